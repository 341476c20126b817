//! The examples in the help of every command, run as they are printed.
//!
//! `examples` takes them out of the help, `site` prepares what they speak of: a
//! directory, a server with contents, and a client; `started` runs one. An example that needs
//! something else is added there; one that cannot be run makes the test fail.
#![allow(clippy::unwrap_used)]

mod client;
mod examples;
mod site;
mod started;
#[path = "../support/mod.rs"]
mod support;

use examples::{Example, all_examples};
use site::Site;
use support::{good, run};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_example_works() {
    let examples = all_examples();
    let site = Site::new();
    let mut wrong = Vec::new();
    for example in &examples {
        if let Err(reason) = site.run(example).await {
            wrong.push(format!("{}\n    {reason}", example.text));
        }
    }
    assert!(
        wrong.is_empty(),
        "examples of --help fail:\n\n{}",
        wrong.join("\n\n")
    );
}

#[test]
fn every_command_has_an_example_of_its_own() {
    let examples = all_examples();
    for command in examples::commands() {
        let own = format!("trunkline {command}");
        let has_own = |example: &Example| example.command == command && example.text.contains(&own);
        assert!(
            examples.iter().any(has_own),
            "{command} --help has no example"
        );
        let help = good(&run(&[&command, "--help"]));
        assert!(help.contains("--log-format"), "{command}");
    }
}
