//! Every attack once and small, for the gate: what is checked are counts, so a
//! slow machine fails nothing.

use std::time::Instant;

use crate::attacks::Attack;
use crate::error::Result;
use crate::field::Scale;
use crate::options::Options;
use crate::outcome::{broken, judge_victim};
use crate::scene::Scene;
use crate::server::Setup;

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
        let begun = Instant::now();
        let mut faults = once(&mut scene, attack).await;
        if setup == Setup::FullPipe && !scene.server.ends_by_signal().await {
            faults.push("SIGTERM did not end it".into());
        }
        let (seconds, words) = (begun.elapsed().as_secs_f32(), words(&faults));
        crate::say(format!("{:<20} {seconds:>5.1} s  {words}", attack.name));
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
    let before = scene.faults();
    let running = scene.attack(attack, Scale::Quick);
    let (phase, field) = scene.measure(running).await;
    let mut faults = field.told().faults;
    if !scene.server.is_alive() {
        faults.push("the server died".into());
        return faults;
    }
    if !scene.is_up_to_date().await {
        faults.push("the victim lacks changes".into());
    }
    faults.extend(broken(scene.faults().since(before)));
    let is_refused = field.refused() > 0 || !phase.refusals.is_empty();
    if attack.is_refused && !is_refused {
        faults.push("nothing was refused".into());
    }
    if field.taken() + field.refused() == 0 {
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
