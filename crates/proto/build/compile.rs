//! From `.proto` files to an encoded `FileDescriptorSet`, options included.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use protox::{
    Compiler, Error,
    file::{ChainFileResolver, File, FileResolver, GoogleFileResolver},
    prost_reflect::prost_types::FileDescriptorProto,
};

use super::{extra, scope};

/// What imports are relative to, inside the directory `proto` of the crate.
const ROOTS: &[&str] = &[
    "data-plane-api",
    "xds",
    "protoc-gen-validate",
    "googleapis",
    "opentelemetry-proto",
    "client_model",
    "cel-spec/proto",
    "ratelimit/api",
];

/// File name to parsed file.
pub(crate) type Files = BTreeMap<String, FileDescriptorProto>;

/// Compiles all files under `dir`.
pub(crate) fn descriptor_set(dir: &Path) -> Result<Vec<u8>, String> {
    println!("cargo::rerun-if-changed={}", dir.display());
    let mut files = Files::new();
    for root in ROOTS.iter().map(|root| dir.join(root)) {
        let mut paths = Vec::new();
        collect(&root, &mut paths).map_err(|e| format!("{}: {e}", root.display()))?;
        for path in paths {
            let file = parse(&root, &path).map_err(|e| format!("{}: {e}", path.display()))?;
            files.insert(file.name().to_owned(), file);
        }
    }
    extra::add(&mut files);
    let parsed = Parsed(scope::absolute(files));
    let names: Vec<_> = parsed.0.keys().cloned().collect();

    let mut resolver = ChainFileResolver::new();
    resolver.add(parsed);
    resolver.add(GoogleFileResolver::new());
    let mut compiler = Compiler::with_file_resolver(resolver);
    compiler.include_imports(true);
    compiler.open_files(names).map_err(|e| format!("{e:?}"))?;
    Ok(compiler.encode_file_descriptor_set())
}

fn collect(dir: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|e| e == "proto") {
            files.push(path);
        }
    }
    Ok(())
}

fn parse(root: &Path, path: &Path) -> Result<FileDescriptorProto, String> {
    let source = fs::read_to_string(path).map_err(|e| e.to_string())?;
    let name = path.strip_prefix(root).map_err(|e| e.to_string())?;
    let parts: Vec<_> = name.iter().map(|part| part.to_string_lossy()).collect();
    let file = File::from_source(&parts.join("/"), &source).map_err(|e| format!("{e:?}"))?;
    Ok(file.into())
}

/// The files that were parsed, for the compiler.
struct Parsed(Files);

impl FileResolver for Parsed {
    fn open_file(&self, name: &str) -> Result<File, Error> {
        let file = self
            .0
            .get(name)
            .ok_or_else(|| Error::file_not_found(name))?;
        Ok(File::from_file_descriptor_proto(file.clone()))
    }
}
