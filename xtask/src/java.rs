//! Programs in Java, where Java and Maven are installed.

use std::path::{Path, PathBuf};

use crate::failure::Result;
use crate::workspace::{Workspace, capture, status};

/// Builds a module of ours into a folder of the target directory, with all that
/// it needs. There is none where Java or Maven is missing or the module cannot
/// be built, which is said.
pub(crate) fn build(workspace: &Workspace, module: &str, folder: &str) -> Result<Option<PathBuf>> {
    let there = |program, version| capture(workspace.program(program).arg(version)).is_ok();
    if !there("java", "-version") || !there("mvn", "--version") {
        println!("Java or Maven is not installed: {module} is left out");
        return Ok(None);
    }
    let folder = workspace.target().join(folder);
    let mut maven = workspace.program("mvn");
    maven.current_dir(workspace.root().join(module));
    maven.args(["--quiet", "--batch-mode", "process-classes"]);
    maven.arg(format!("-Doutput={}", folder.display()));
    if !status(&mut maven)?.success() {
        // Its packages come over the network, which is not always there.
        println!("{module} could not be built, see above: it is left out");
        return Ok(None);
    }
    Ok(Some(folder))
}

/// The class path of a folder that was built.
pub(crate) fn class_path(folder: &Path) -> String {
    let folder = folder.display();
    format!("{folder}/classes:{folder}/dependency/*")
}
