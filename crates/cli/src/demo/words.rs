//! The text of the demo: where everything is, and what to try.

use std::path::Path;

use super::sample::Ports;
use crate::running::Running;

/// Prints the text; `envoy` is whether one is running.
pub(super) fn say(running: &Running, config: &Path, ports: &Ports, envoy: bool) {
    say_where(running, config, ports, envoy);
    println!("\nTry in another terminal:\n");
    say_commands(running, config, ports, envoy);
    println!("\nCtrl-C stops everything and takes the files away.\n");
    println!("What a client receives (+ new, ~ changed, - gone)");
    println!("and what is asked for on demand (? asked, ! answered):\n");
}

/// Prints the addresses of everything that runs.
fn say_where(running: &Running, config: &Path, ports: &Ports, envoy: bool) {
    let Running { listen, admin, .. } = running;
    let Ports {
        ingress,
        on_demand,
        v1,
        v2,
    } = ports;
    let config = config.display();
    println!("Trunkline serves xDS on {listen} and its admin API on http://{admin}");
    println!("from the files in {config}");
    println!("A backend answers on http://127.0.0.1:{v1} (v1) and http://127.0.0.1:{v2} (v2)");
    match envoy {
        true => println!(
            "Envoy takes its configuration from here and listens on http://127.0.0.1:{ingress},\n\
             and on http://127.0.0.1:{on_demand} with virtual hosts that it fetches on demand"
        ),
        false => println!(
            "No Envoy is installed (--envoy PATH names one), so only a client that prints is connected"
        ),
    }
}

/// Prints commands to try; those that reach Envoy, only if it is running.
fn say_commands(running: &Running, config: &Path, ports: &Ports, envoy: bool) {
    let ingress = ports.ingress;
    let routes = config.join("routes.yaml");
    let (config, routes) = (config.display(), routes.display());
    if envoy {
        println!("  curl http://127.0.0.1:{ingress}/");
    }
    println!("  sed -i.bak 's/cluster: v1/cluster: v2/' {routes}");
    if envoy {
        println!(
            "  curl http://127.0.0.1:{ingress}/                     # by now it is v2 that answers"
        );
    }
    let (program, admin) = (program(), admin_flag(running));
    if envoy {
        say_on_demand(ports.on_demand);
        println!(
            "  {program} explain --node demo-envoy --route on-demand --host a.tenants.example{admin}"
        );
    }
    println!("  {program} status{admin}");
    println!("  {program} get rds routes -o yaml{admin}");
    println!(
        "  echo 'nonsense: 1' >> {routes}    # a mistake: it is said here, and the last good contents stay"
    );
    println!("  {program} validate {config}");
}

/// Prints requests to the listener with virtual hosts on demand.
fn say_on_demand(port: u16) {
    println!(
        "  curl -H 'Host: shop.example' http://127.0.0.1:{port}/    # Envoy asks for this host now"
    );
    println!("  curl -H 'Host: a.tenants.example' http://127.0.0.1:{port}/");
    println!(
        "  curl -H 'Host: junk' http://127.0.0.1:{port}/            # there is none: 404 at once"
    );
}

/// Returns the flag that commands need to reach the admin address; nothing, if
/// its port is the default one.
fn admin_flag(running: &Running) -> String {
    match running.admin.port() {
        18001 => String::new(),
        _ => format!(" --admin {}", running.admin),
    }
}

/// Returns the path of this program, from here if it is below.
fn program() -> String {
    let Ok(path) = std::env::current_exe() else {
        return "trunkline".to_owned();
    };
    let here = std::env::current_dir().unwrap_or_default();
    let short = path.strip_prefix(&here).unwrap_or(&path);
    short.display().to_string()
}
