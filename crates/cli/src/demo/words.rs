//! The text of the demo: where everything is, and what to try.

use std::path::Path;

use super::sample::Ports;
use crate::running::Running;

/// Prints the text.
pub(super) fn say(running: &Running, config: &Path, ports: &Ports, envoy: bool) {
    let Running { listen, admin, .. } = running;
    let Ports {
        ingress,
        on_demand,
        v1,
        v2,
    } = ports;
    let routes = config.join("routes.yaml");
    let (config, routes) = (config.display(), routes.display());
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
    println!("\nTry in another terminal:\n");
    if envoy {
        println!("  curl http://127.0.0.1:{ingress}/");
    }
    println!("  sed -i.bak 's/cluster: v1/cluster: v2/' {routes}");
    if envoy {
        println!(
            "  curl http://127.0.0.1:{ingress}/                     # by now it is v2 that answers"
        );
    }
    let program = program();
    let flag = match admin.port() {
        18001 => String::new(),
        _ => format!(" --admin {admin}"),
    };
    if envoy {
        println!(
            "  curl -H 'Host: shop.example' http://127.0.0.1:{on_demand}/    # Envoy asks for this host now"
        );
        println!("  curl -H 'Host: a.tenants.example' http://127.0.0.1:{on_demand}/");
        println!(
            "  curl -H 'Host: junk' http://127.0.0.1:{on_demand}/            # there is none: 404 at once"
        );
        println!(
            "  {program} explain --node demo-envoy --route on-demand --host a.tenants.example{flag}"
        );
    }
    println!("  {program} status{flag}");
    println!("  {program} get rds routes -o yaml{flag}");
    println!(
        "  echo 'nonsense: 1' >> {routes}    # a mistake: it is said here, and the last good contents stay"
    );
    println!("  {program} validate {config}");
    println!("\nCtrl-C stops everything and takes the files away.\n");
    println!("What a client receives (+ new, ~ changed, - gone)");
    println!("and what is asked for on demand (? asked, ! answered):\n");
}

/// The path of this program as it was called.
fn program() -> String {
    let Ok(path) = std::env::current_exe() else {
        return "trunkline".to_owned();
    };
    let here = std::env::current_dir().unwrap_or_default();
    let short = path.strip_prefix(&here).unwrap_or(&path);
    short.display().to_string()
}
