//! Programs in Go, where Go is installed.

use std::path::PathBuf;

use crate::failure::Result;
use crate::workspace::{Workspace, capture, status};

/// Builds a package of a module of ours into the target directory. There is no
/// program where Go is missing or the package cannot be built, which is said.
pub(crate) fn build(
    workspace: &Workspace,
    module: &str,
    package: &str,
    program: &str,
) -> Result<Option<PathBuf>> {
    if capture(workspace.program("go").arg("version")).is_err() {
        println!("Go is not installed: {module} is left out");
        return Ok(None);
    }
    let program = workspace.target().join(program);
    let mut go = workspace.program("go");
    go.current_dir(workspace.root().join(module));
    go.args(["build", "-o"]).arg(&program).arg(package);
    if !status(&mut go)?.success() {
        // Its modules come over the network, which is not always there.
        println!("{module} could not be built, see above: it is left out");
        return Ok(None);
    }
    Ok(Some(program))
}
