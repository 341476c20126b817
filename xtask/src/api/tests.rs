//! Listings of small crates.

use super::listing::{self, Listing};
use super::load;
use super::tree::Tree;

/// The listing of a crate `a`, which may use a crate `b`.
fn listed(a: &str, b: &str) -> Listing {
    let mut tree = Tree::default();
    for (name, text) in [("a", a), ("b", b)] {
        let read = |path: &str| (path == "src/lib.rs").then(|| text.to_owned());
        load::load(&mut tree, name, "src", &read).unwrap();
    }
    assert_eq!(tree.unseen, [""; 0]);
    listing::list(&tree, "a")
}

#[track_caller]
fn check(source: &str, lines: &[&str]) {
    assert_eq!(listed(source, "").lines, lines);
}

#[test]
fn private_things_are_left_out() {
    check(
        "fn f() {} pub(crate) struct S; mod m { pub fn g() {} }
         pub struct T { pub x: u8, y: u8 } pub struct U(u8, pub u8);",
        &[
            "pub struct a::T { .. }",
            "pub a::T::x: u8",
            "pub struct a::U(_, pub u8)",
        ],
    );
}

#[test]
fn a_re_export_is_listed_where_users_find_it() {
    check(
        "mod m { mod n { pub struct S; impl S { pub fn f(&self, t: T) {} } pub struct T; }
                 pub use n::{S, T as U}; }
         pub use m::*;
         pub mod p { pub use crate::S as Again; }",
        &[
            "pub struct a::S",
            "pub fn a::S::f(&self, t: a::U)",
            "pub struct a::U",
            "pub mod a::p",
            "pub use a::S as a::p::Again",
        ],
    );
}

#[test]
fn a_module_and_a_function_of_one_name_are_kept_apart() {
    check(
        "mod accept { pub fn accept() {} } pub use accept::accept;",
        &["pub fn a::accept()"],
    );
}

#[test]
fn methods_of_a_type_that_users_cannot_name_are_left_out() {
    check(
        "mod m { pub struct S; impl S { pub fn f() {} } impl Clone for S {} pub trait T {} }
         pub struct U; impl m::T for U {} impl U { fn g() {} pub const C: u8 = 1; }",
        &["pub struct a::U", "pub const a::U::C: u8"],
    );
}

#[test]
fn traits_by_derive_and_by_hand_are_one_line() {
    check(
        "use std::fmt; #[derive(Clone, Debug)] pub struct S<'a>(&'a u8);
         impl fmt::Display for S<'_> {} impl From<u8> for S<'_> {}
         impl Iterator for S<'_> { type Item = fmt::Error; }
         #[derive(Clone)] pub struct T<X>(X); impl<X: Copy> T<X> { pub fn f(self) -> X {} }",
        &[
            "pub struct a::S<'a>(_)",
            "impl Clone + std::fmt::Debug + std::fmt::Display for a::S<'_>",
            "impl From<u8> for a::S<'_>",
            "impl Iterator for a::S<'_> { type Item = std::fmt::Error; }",
            "pub struct a::T<X>(_)",
            "impl<X: Clone> Clone for a::T<X>",
            "impl<X: Copy> pub fn a::T<X>::f(self) -> X",
        ],
    );
}

#[test]
fn enums_and_traits_have_a_line_for_each_part() {
    check(
        "#[non_exhaustive] pub enum E { A, B(u8), C { x: u8, } }
         pub trait T: Send { type X: Clone; const C: u8 = 1; fn f(&self); fn g(&mut self) {} }",
        &[
            "#[non_exhaustive] pub enum a::E",
            "pub a::E::A",
            "pub a::E::B(u8)",
            "pub a::E::C { x: u8 }",
            "pub trait a::T: Send",
            "pub const a::T::C: u8 { .. }",
            "pub type a::T::X: Clone",
            "pub fn a::T::f(&self)",
            "pub fn a::T::g(&mut self) { .. }",
        ],
    );
}

#[test]
fn tests_are_left_out_and_conditions_are_shown() {
    check(
        "#[cfg(test)] pub mod t { pub fn f() {} } #[cfg(test)] pub fn g() {}
         #[cfg(unix)] pub mod u { pub fn h() {} } #[doc(hidden)] pub const C: u8 = 1;",
        &[
            "#[doc(hidden)] pub const a::C: u8",
            "#[cfg(unix)] pub mod a::u",
            "#[cfg(unix)] pub fn a::u::h()",
        ],
    );
}

#[test]
fn signatures_are_whole_and_their_bodies_are_gone() {
    check(
        "#[must_use] pub async fn f<T>(mut x: T, (y, _): (u8, u8),) -> Result<T, E>
         where T: Into<String>, { todo(x) }
         type E = Box<dyn std::error::Error>;",
        &[
            "pub async fn a::f<T>(x: T, _: (u8, u8)) -> Result<T, Box<dyn std::error::Error>> \
           where T: Into<String>",
        ],
    );
}

#[test]
fn what_a_macro_of_the_crate_defines_is_listed() {
    check(
        "macro_rules! consts { ($($name:ident)*) => { $(pub const $name: u8 = 1;)* } }
         consts! { A B }
         #[macro_export] macro_rules! m { () => {} }",
        &["pub const a::A: u8", "pub const a::B: u8", "macro a::m!"],
    );
}

#[test]
fn of_another_crate_the_re_export_is_listed_and_what_lacks_one_is_told() {
    let listing = listed(
        "pub use b::{Named, kinds}; pub fn f(x: Named, y: b::kinds::Kind, z: &b::Lacking) {}",
        "pub struct Named { pub x: u8 } pub mod kinds { pub struct Kind; } pub struct Lacking;",
    );
    assert_eq!(
        listing.lines,
        [
            "pub use b::Named as a::Named",
            "pub fn a::f(x: a::Named, y: a::kinds::Kind, z: &b::Lacking)",
            "pub use b::kinds as a::kinds",
        ]
    );
    assert_eq!(Vec::from_iter(listing.unnamed.keys()), ["b::Lacking"]);
}

#[test]
fn a_re_export_of_a_whole_crate_names_its_public_types() {
    let listing = listed(
        "pub use b as core; pub use b::Short; pub fn f(x: b::m::Deep, y: Short) {}
         pub fn g(x: b::Hidden) {}",
        "mod private { pub struct Hidden; } use private::Hidden;
         pub mod m { pub struct Deep; } pub struct Short;",
    );
    assert_eq!(
        listing.lines,
        [
            "pub use b::Short as a::Short",
            "pub use b as a::core",
            "pub fn a::f(x: a::core::m::Deep, y: a::Short)",
            "pub fn a::g(x: b::private::Hidden)",
        ]
    );
    assert_eq!(
        Vec::from_iter(listing.unnamed.keys()),
        ["b::private::Hidden"]
    );
}

#[test]
fn modules_are_found_in_both_kinds_of_files() {
    let files = |path: &str| {
        let text = match path {
            "src/lib.rs" => "pub mod x; pub mod y;",
            "src/x.rs" => "pub mod z;",
            "src/x/z.rs" => "pub fn f() {}",
            "src/y/mod.rs" => "",
            _ => return None,
        };
        Some(text.to_owned())
    };
    let mut tree = Tree::default();
    load::load(&mut tree, "a", "src", &files).unwrap();
    let lines = listing::list(&tree, "a").lines;
    let wanted = [
        "pub mod a::x",
        "pub mod a::x::z",
        "pub fn a::x::z::f()",
        "pub mod a::y",
    ];
    assert_eq!(lines, wanted);
}
