//! One measurement from beginning to end.
//!
//! | file | concern |
//! |---|---|
//! | `target` | the server: started or found, and how it is given contents |
//! | `phase` | what is counted while something happens |
//! | `plan` | which resource changes next, and how |
//! | `stage` | the things that can happen |
//! | `warnings` | why the numbers may not be trusted |

mod phase;
mod plan;
mod stage;
mod target;
mod warnings;

use std::sync::Arc;

use crate::client::{Pool, Shared, Spec};
use crate::contents::{Form, Kind, Recipe, Truth, Variants, write_hosts};
use crate::error::{Error, Result};
use crate::options::{Asking, Options, Output, Told, Variant};
use crate::report::Report;
use crate::{serving, table};

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
    trunkline::listen::raise_descriptors();
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
        // A file that is of no use is said so before anything is started.
        let address = options.address.as_deref().unwrap_or("localhost:0");
        Pool::new(options, address)?.check().await?;
        let report = measure(options).await?;
        write(options, &report)?;
        Ok(Some(report))
    })
}

/// Checks that flags go together and that their values mean something.
fn check(options: &Options) -> Result<()> {
    check_contents(options)?;
    check_removals(options)?;
    let part = options.nack_part.unwrap_or(0.0);
    let wrong = |text: &str| Err(Error::Usage(text.to_owned()));
    if options.tls_ca.is_some() && options.address.is_none() && options.start.is_none() {
        return wrong("the tool's own servers speak no TLS; give the address of one, or --start");
    }
    if !(0.0..=1.0).contains(&part) {
        return wrong("--nack-part is a part from 0 to 1");
    }
    let control = |start: &String| start.contains("{control}");
    if options.start.as_ref().is_some_and(|start| !control(start)) && options.driver.is_none() {
        return wrong("--start needs --driver or {control}, to give the server its contents");
    }
    let by_name = options.told() == Told::Locators && options.ask == Asking::Wildcard;
    if options.variants > 1 && by_name && options.mode == Variant::Sotw {
        return wrong(
            "a wildcard in state of the world names nothing that could have parameters; \
             leave --told-by out, or say --ask named",
        );
    }
    if options.light && options.nack.is_some() {
        return wrong("--light clients reject nothing; leave --nack or --light out");
    }
    Ok(())
}

/// Measures a server from its start to its end, and returns the report.
async fn measure(options: &Options) -> Result<Report> {
    let recipe = Recipe {
        kinds: options.types.clone(),
        prefix: options.prefix.clone(),
        size: options.size,
        variants: variants(options)?,
    };
    // A storm changes a part of the contents, and one more to know its end.
    let each_storm = changed_meanwhile(options) + options.variants.max(1) + 1;
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
    stage.connect(&mut target).await?;
    if target.is_driven() {
        stage.change(&mut target).await?;
        for _ in 0..options.reconnect_storm {
            stage.storm(&mut target).await?;
        }
    }
    stage.idle(&mut target).await;
    Ok(stage.finish(&target).await)
}

/// Checks that the contents can be made, and that every variant has clients.
fn check_contents(options: &Options) -> Result<()> {
    let wrong = |text: &str| Err(Error::Usage(text.to_owned()));
    if options.types.is_empty() || options.resources == 0 {
        return wrong("there must be a type and a resource of it");
    }
    if options.floor && options.types.len() != 1 {
        return wrong("--floor writes one type only; give one with --types");
    }
    if options.types.contains(&Kind::Hosts) && !options.prefix.contains('/') {
        return wrong(
            "virtual hosts are named under a route configuration; say --prefix ROUTE/host",
        );
    }
    if options.variants > 1 && options.categories < options.variants {
        return wrong("--variants needs at least as many --categories, so that each has clients");
    }
    if options.variants > 1 && options.floor {
        return wrong("--floor gives everybody the same; leave --variants or --floor out");
    }
    Ok(())
}

/// Checks that removals can be made, and that clients can see them and what
/// comes back.
fn check_removals(options: &Options) -> Result<()> {
    let wrong = |text: &str| Err(Error::Usage(text.to_owned()));
    if !(0.0..=0.5).contains(&options.removals) {
        return wrong("--removals is a part from 0 to 0.5: what is removed also comes back");
    }
    if options.removals == 0.0 {
        return Ok(());
    }
    let kind = options.change.unwrap_or(options.types[0]);
    let whole = matches!(kind, Kind::Clusters | Kind::Listeners);
    if options.mode == Variant::Sotw && !whole {
        return wrong(
            "state of the world does not tell a client that an endpoint or a route is gone; \
             use --change cds or lds, or --mode delta",
        );
    }
    let admin = |driver: &String| driver.starts_with("admin=");
    if options.variants > 1 && options.driver.as_ref().is_some_and(admin) {
        return wrong("the admin API removes all variants at once; use another --driver");
    }
    Ok(())
}

/// Makes the variants of each resource; an error if the flags do not allow
/// them.
fn variants(options: &Options) -> Result<Variants> {
    let made = Variants::new(options.variants, options.categories);
    made.map_err(|error| {
        let (variants, categories) = (options.variants, options.categories);
        Error::Usage(format!(
            "--variants {variants} --categories {categories}: {error}; each variant is for \
             {} categories, so give more variants or fewer categories",
            categories / variants.max(1)
        ))
    })
}

/// Returns how many resources, or variants of them, change in a storm.
fn changed_meanwhile(options: &Options) -> usize {
    let part = options.changed_meanwhile.clamp(0.0, 1.0);
    (options.resources as f64 * options.variants.max(1) as f64 * part) as usize
}

/// Prints the report, and writes it to a file, as the flags say.
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
