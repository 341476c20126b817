//! The server that is measured, and what gives it contents.

use bytes::Bytes;
use http::Method;

use crate::driver::{self, Driver, Http, Put};
use crate::error::{Error, Result};
use crate::measure::{Process, Usage, Work};
use crate::options::{Child, Options};
use crate::serving::Started;

/// See the module's documentation.
pub(crate) struct Target {
    driver: Option<Box<dyn Driver>>,
    started: Option<Started>,
    own: Option<Child>,
    /// Where the library's own server says what it did.
    work: Option<Http>,
    /// Whether a server that is to be started takes contents by itself.
    takes: bool,
    /// Where it serves.
    pub(crate) address: String,
    process: Option<Process>,
    /// What it is, for the report.
    pub(crate) name: String,
}

impl Target {
    /// Prepares everything but the server itself.
    pub(crate) async fn prepare(options: &Options) -> Result<Self> {
        let own = match (&options.address, &options.start, options.floor) {
            (_, _, true) => Some(Child::Floor),
            (None, None, false) => Some(Child::Library),
            _ => None,
        };
        let driver = match (&options.driver, own) {
            (Some(_), Some(_)) => {
                return Err(Error::Usage(
                    "--driver is for a server of one's own; give its address, or --start".into(),
                ));
            }
            (Some(text), None) => driver::parse(text)?,
            // Without a driver, what the server has is what is measured.
            (None, _) => None,
        };
        Ok(Self {
            driver,
            started: None,
            own,
            work: None,
            takes: options
                .start
                .as_ref()
                .is_some_and(|s| s.contains("{control}")),
            address: options.address.clone().unwrap_or_default(),
            process: options.pid.map(Process::new),
            name: match own {
                Some(Child::Library) => "the library's own".into(),
                Some(Child::Floor) => "the floor".into(),
                None => options
                    .start
                    .clone()
                    .or_else(|| options.address.clone())
                    .unwrap_or_default(),
            },
        })
    }

    /// Returns whether contents are put before the server starts.
    pub(crate) fn loads_before_start(&self) -> bool {
        self.own.is_none() && self.driver.as_ref().is_some_and(|d| d.needs_no_server())
    }

    /// Starts the server, if it is one that the tool starts. Contents go to it
    /// from now on.
    pub(crate) async fn start(&mut self, options: &Options) -> Result<()> {
        let started = match (self.own, &options.start) {
            (Some(own), _) => Started::start_own(options, own).await?,
            (None, Some(command)) => Started::start_command(options, command).await?,
            (None, None) => return Ok(()),
        };
        self.address.clone_from(&started.address);
        self.process = started.process();
        if let Some(control) = &started.control {
            self.driver = driver::parse(&format!("put=http://{control}"))?;
            if self.own == Some(Child::Library) {
                self.work = Some(Http::new(control)?);
            }
        }
        self.started = Some(started);
        Ok(())
    }

    /// Returns whether contents can be put, now or when the server is started.
    pub(crate) fn is_driven(&self) -> bool {
        self.driver.is_some() || self.own.is_some() || self.takes
    }

    /// Returns how many seconds the server took until it accepted connections;
    /// `None` if the tool did not start it.
    pub(crate) fn started_in(&self) -> Option<f64> {
        let started = self.started.as_ref()?;
        Some(started.took.as_secs_f64())
    }

    /// Puts resources, if there is a driver.
    pub(crate) async fn put(&mut self, resources: &[Put]) -> Result<()> {
        match &mut self.driver {
            Some(driver) => driver.put(resources).await,
            None => Ok(()),
        }
    }

    /// Removes resources, if there is a driver.
    pub(crate) async fn remove(&mut self, resources: &[Put]) -> Result<()> {
        match &mut self.driver {
            Some(driver) => driver.remove(resources).await,
            None => Ok(()),
        }
    }

    /// Returns how many resources are best put at once.
    pub(crate) fn batch(&self) -> usize {
        self.driver.as_ref().map_or(1, |driver| driver.batch())
    }

    /// Returns what the server has used so far; `None` if its process is not
    /// known.
    pub(crate) fn usage(&self) -> Option<Usage> {
        self.process.and_then(Process::usage)
    }

    /// Returns what the server did so far; `None` if it does not tell.
    pub(crate) async fn work(&mut self) -> Option<Work> {
        let http = self.work.as_mut()?;
        let asked = http.send(Method::GET, "/work", "application/json", Bytes::new());
        serde_json::from_slice(&asked.await.ok()?).ok()
    }

    /// Starts the peak of the server's memory anew, if its process is known.
    pub(crate) fn reset_peak(&self) {
        if let Some(process) = self.process {
            process.reset_peak();
        }
    }
}
