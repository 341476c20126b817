//! The text of the demo: where everything is, and what to try.

use std::path::Path;

use super::sample::Ports;
use crate::running::Running;

/// The port of the admin address that commands use without a flag.
const DEFAULT_PORT: u16 = 18001;

/// Prints the introduction: the addresses, commands to try, and the signs in
/// the lines that follow.
pub(super) fn print_introduction(running: &Running, config: &Path, ports: &Ports, has_envoy: bool) {
    print_addresses(running, config, ports, has_envoy);
    println!("\nTry in another terminal:\n");
    print_commands(running, config, ports, has_envoy);
    println!("\nCtrl-C stops everything and takes the files away.\n");
    println!("What a client receives (+ new, ~ changed, - gone)");
    println!("and what is asked for on demand (? asked, ! answered):\n");
}

/// Prints the addresses of all that runs, and the folder of the resources.
fn print_addresses(running: &Running, config: &Path, ports: &Ports, has_envoy: bool) {
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
    match has_envoy {
        true => println!(
            "Envoy takes its configuration from here and listens on http://127.0.0.1:{ingress},\n\
             and on http://127.0.0.1:{on_demand} with virtual hosts that it fetches on demand"
        ),
        false => println!(
            "No Envoy is installed (--envoy PATH names one), so only a client that prints is connected"
        ),
    }
}

/// Prints commands to try. Those that reach Envoy are left out if Envoy does
/// not run.
fn print_commands(running: &Running, config: &Path, ports: &Ports, has_envoy: bool) {
    let ingress = ports.ingress;
    let routes = config.join("routes.yaml");
    let (config, routes) = (config.display(), routes.display());

    if has_envoy {
        println!("  curl http://127.0.0.1:{ingress}/");
    }
    println!("  sed -i.bak 's/cluster: v1/cluster: v2/' {routes}");
    if has_envoy {
        println!(
            "  curl http://127.0.0.1:{ingress}/                     # by now it is v2 that answers"
        );
    }

    let (program, admin) = (program_path(), admin_flag(running));
    if has_envoy {
        print_requests(ports.on_demand);
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

/// Prints requests to the listener with virtual hosts on demand, which is on
/// this port.
fn print_requests(port: u16) {
    println!(
        "  curl -H 'Host: shop.example' http://127.0.0.1:{port}/    # Envoy asks for this host now"
    );
    println!("  curl -H 'Host: a.tenants.example' http://127.0.0.1:{port}/");
    println!(
        "  curl -H 'Host: junk' http://127.0.0.1:{port}/            # there is none: 404 at once"
    );
}

/// Returns the flag that commands need to reach the admin address, after a
/// space; nothing, if its port is the default one.
fn admin_flag(running: &Running) -> String {
    match running.admin.port() {
        DEFAULT_PORT => String::new(),
        _ => format!(" --admin {}", running.admin),
    }
}

/// Returns the path of this program, relative if it is below the current
/// directory. If the path is not known, returns the name.
fn program_path() -> String {
    let Ok(path) = std::env::current_exe() else {
        return "trunkline".to_owned();
    };
    let current_dir = std::env::current_dir().unwrap_or_default();
    let shown_path = path.strip_prefix(&current_dir).unwrap_or(&path);
    shown_path.display().to_string()
}
