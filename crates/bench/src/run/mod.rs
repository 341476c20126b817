//! One measurement from beginning to end.
//!
//! | file | concern |
//! |---|---|
//! | `target` | the server: started or found, and how it is given contents |
//! | `phase` | what is counted while something happens |
//! | `stage` | the things that can happen |
//! | `warnings` | what keeps the numbers from being believed |

mod phase;
mod stage;
mod target;
mod warnings;

use std::sync::Arc;

use crate::client::{Shared, Spec};
use crate::contents::{Form, Kind, Recipe, Truth, write_hosts};
use crate::error::{Error, Result};
use crate::options::{Options, Output};
use crate::report::Report;
use crate::{descriptors, serving, table};

use stage::Stage;
use target::Target;
use warnings::{load, warnings};

/// Measures, and writes the report where [`Options::output`] and
/// [`Options::report`] say. None where this process is only a server that
/// another one measures, or where a file of contents was asked for.
///
/// # Errors
/// If the server cannot be reached or driven, or makes no progress.
pub fn run(options: &Options) -> Result<Option<Report>> {
    if let (Some(path), Some(count)) = (&options.write, options.virtual_hosts) {
        let path = path.clone();
        let form = match (options.inside, options.whole) {
            (_, true) => Form::Whole,
            (true, false) => Form::Inside,
            (false, false) => Form::Apart,
        };
        let written = write_hosts(&path, count, form);
        written.map_err(|source| Error::File { path, source })?;
        return Ok(None);
    }
    descriptors::raise();
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if options.threads > 0 {
        builder.worker_threads(options.threads);
    }
    let runtime = builder.enable_all().build()?;
    runtime.block_on(async {
        if let Some(child) = options.child {
            serving::serve(child).await?;
            return Ok(None);
        }
        check(options)?;
        let report = measure(options).await?;
        write(options, &report)?;
        Ok(Some(report))
    })
}

fn check(options: &Options) -> Result<()> {
    let wrong = |text: &str| Err(Error::Usage(text.to_owned()));
    if options.types.is_empty() || options.resources == 0 {
        return wrong("there must be a type and a resource of it");
    }
    if options.floor && options.types.len() != 1 {
        return wrong("--floor writes one type only; give one with --types");
    }
    let control = |start: &String| start.contains("{control}");
    if options.start.as_ref().is_some_and(|start| !control(start)) && options.driver.is_none() {
        return wrong("--start needs --driver or {control}, to give the server its contents");
    }
    if options.types.contains(&Kind::Hosts) && !options.prefix.contains('/') {
        return wrong(
            "virtual hosts are named under a route configuration; say --prefix ROUTE/host",
        );
    }
    if options.light && options.nack.is_some() {
        return wrong("--light clients reject nothing; leave --nack or --light out");
    }
    Ok(())
}

async fn measure(options: &Options) -> Result<Report> {
    let recipe = Recipe {
        kinds: options.types.clone(),
        prefix: options.prefix.clone(),
        size: options.size,
    };
    // A storm changes a part of the contents, and one more to know its end.
    let part = options.changed_meanwhile.clamp(0.0, 1.0);
    let each_storm = (options.resources as f64 * part) as usize + 2;
    let changes = options.changes + options.reconnect_storm * each_storm;
    let truth = Truth::new(recipe, options.resources, changes);
    let shared = Arc::new(Shared::new(truth));
    let mut target = Target::prepare(options).await?;
    let driven = target.is_driven();
    let specs = Spec::all(options, driven);
    let mut stage = Stage::new(options, shared, specs);
    if driven && target.loads_before_start() {
        stage.load(&mut target).await?;
        target.start(options).await?;
    } else {
        target.start(options).await?;
        if target.is_driven() {
            stage.load(&mut target).await?;
        }
    }
    stage.connect(&target).await?;
    if target.is_driven() {
        stage.change(&mut target).await?;
        for _ in 0..options.reconnect_storm {
            stage.storm(&mut target).await?;
        }
    }
    stage.idle(&target).await;
    Ok(stage.finish(&target).await)
}

#[expect(clippy::print_stdout, reason = "the report is what the tool is for")]
fn write(options: &Options, report: &Report) -> Result<()> {
    let json = || serde_json::to_string_pretty(report).map_err(std::io::Error::other);
    match options.output {
        Output::Table => print!("{}", table::show(report)),
        Output::Json => println!("{}", json()?),
    }
    if let Some(path) = &options.report {
        std::fs::write(path, json()?).map_err(|source| Error::File {
            path: path.clone(),
            source,
        })?;
    }
    Ok(())
}
