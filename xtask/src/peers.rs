//! gRPC clients in Go and Java, whose servers change and restart under load;
//! Trunkline's channel for tonic, which calls servers of grpc-go;
//! and Trunkline's client at a server of go-control-plane.
//!
//! They need toolchains and packages that a gate cannot count on, so they are
//! beside it, and clients whose toolchain is not installed are left out. The
//! gate has gRPC's C-core and Envoy in the same successions.

use crate::failure::{Failure, Result};
use crate::workspace::{Workspace, run as run_shown};
use crate::{go, java};

const GO: &str = "crates/interop/peers/go";
const JAVA: &str = "crates/interop/peers/java";

/// Builds the clients, and goes through all successions with each.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let built = [
        (
            "grpc-go",
            go::build(workspace, GO, "./caller", "peers/go-caller")?,
        ),
        (
            "go-control-plane",
            go::build(workspace, GO, "./control", "peers/go-control")?,
        ),
        (
            "plane",
            go::build(workspace, GO, "./plane", "peers/go-plane")?,
        ),
        (
            "go-server",
            go::build(workspace, GO, "./server", "peers/go-server")?,
        ),
        ("grpc-java", java::build(workspace, JAVA, "peers/java")?),
    ];
    let mut cargo = workspace.cargo(&["run", "--package", "interop", "--bin", "peers", "--"]);
    let mut some = false;
    for (name, program) in built {
        let Some(program) = program else { continue };
        some |= name != "go-control-plane";
        cargo.arg(format!("{name}={}", program.display()));
    }
    if !some {
        return Err(Failure::new("neither Go nor Java with Maven is installed")
            .remedy("install one of them, so that `go`, or `java` and `mvn`, are on the PATH"));
    }
    run_shown(&mut cargo).map_err(|_| {
        Failure::new("clients lost calls or held what they should not, see above which and when")
    })
}
