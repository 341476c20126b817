//! Every attack once and small, for the gate: what is checked are counts, so a
//! slow machine fails nothing.

use std::time::Duration;

use crate::attacks::Attack;
use crate::error::Result;
use crate::field::Scale;
use crate::options::Options;
use crate::outcome::{broken, judge_victim};
use crate::scene::Scene;
use crate::server::Setup;

/// How long each attack goes on.
const TIME: Duration = Duration::from_millis(700);

/// Runs the attacks, those of one kind of server after another on the same one.
/// Returns the names of those after which something did not hold.
pub(crate) async fn run(options: &Options, attacks: &[&'static Attack]) -> Result<Vec<String>> {
    let mut failed = Vec::new();
    let mut rest: Vec<&'static Attack> = attacks.to_vec();
    while let Some(first) = rest.first().copied() {
        let (now, later) = rest.iter().partition(|attack| attack.setup == first.setup);
        rest = later;
        failed.extend(on_one_server(options, first.setup, now).await?);
    }
    Ok(failed)
}

async fn on_one_server(
    options: &Options,
    setup: Setup,
    attacks: Vec<&'static Attack>,
) -> Result<Vec<String>> {
    let mut scene = Scene::start(options, setup).await?;
    let mut failed = Vec::new();
    for attack in attacks {
        let mut faults = once(&mut scene, attack).await;
        if setup == Setup::FullPipe && !scene.server.ends_by_signal().await {
            faults.push("SIGTERM did not end it".into());
        }
        crate::say(format!("{:<20} {}", attack.name, words(&faults)));
        if !faults.is_empty() {
            failed.push(attack.name.to_owned());
        }
        if !scene.server.is_alive() && setup != Setup::FullPipe {
            crate::say(scene.server.last_lines());
            return Ok(failed);
        }
    }
    let mut faults = Vec::new();
    if setup != Setup::FullPipe {
        judge_victim(&mut scene, &mut faults).await;
    }
    if !faults.is_empty() {
        crate::say(format!("at the end: {}", words(&faults)));
        failed.push("the end".into());
    }
    Ok(failed)
}

/// One attack, after which the victim must have everything.
async fn once(scene: &mut Scene, attack: &Attack) -> Vec<String> {
    let running = scene.attack(attack, Scale::Quick, TIME);
    let (phase, (findings, taken)) = scene.measure(running).await;
    let mut faults = findings.faults;
    if !scene.server.is_alive() {
        faults.push("the server died".into());
        return faults;
    }
    if !scene.is_up_to_date().await {
        faults.push("the victim lacks changes".into());
    }
    faults.extend(broken(crate::ledger::Faults {
        // A slow machine may be late.
        skipped: 0,
        ..scene.faults()
    }));
    let is_refused = findings.refused > 0 || !phase.refusals.is_empty();
    if attack.is_refused && !is_refused {
        faults.push("nothing was refused".into());
    }
    if taken == 0 && findings.refused == 0 {
        faults.push("the attack did not take place".into());
    }
    faults
}

fn words(faults: &[String]) -> String {
    match faults.is_empty() {
        true => "holds".to_owned(),
        false => faults.join("; "),
    }
}
