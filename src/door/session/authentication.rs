//! Authentication: a token proves an identity.

use crate::door::session::{Answer, Session, Step};
use crate::engine::Identity;
use crate::name::{CORE, CORE_NAME, ENVELOPE};
use crate::wire::core::Authenticate;
use crate::wire::{Code, Fault, Payload};
use crate::xml::{Element, escape_text};

impl Session {
    /// Authenticates the client. `<authenticate>` must be the first element of the connection. A
    /// later `<authenticate>` ends the connection, since it would be unclear which identity sends
    /// the messages around it.
    pub(super) fn authenticate(&mut self, element: &Element) -> Option<Step> {
        let fault = |text: &str| Fault::new(Code::Authentication, text).at(element.place());
        if self.first > 0 || !self.window.is_empty() {
            let fault = fault("<authenticate> is not the first element of the connection");
            return Some(self.close(fault));
        }
        let guesses = &self.shared.guesses;
        if let Some(wait) = self.peer.and_then(|it| guesses.wait(it, self.now_us)) {
            let seconds = wait.as_secs() + 1;
            let text = format!("too many wrong tokens came from there: wait {seconds} s");
            let advice = "Connect again after that, with a token that is listed.";
            let mut fault = fault(&text).advised(advice);
            fault.retry = Some(true);
            return Some(self.close(fault));
        }
        // The fault doesn't quote the element, which holds a token.
        let token = element.attribute("token").unwrap_or_default();
        let Some(proof) = self.shared.tokens.find(token) else {
            self.peer.into_iter().for_each(|it| guesses.note_wrong(it, self.now_us));
            return Some(self.close(fault("nobody has this token")));
        };
        self.peer.into_iter().for_each(|it| guesses.forget(it));
        self.set_identity(Some(proof.identity.clone()));
        self.proof = Some(proof);
        let number = self.number(0);
        self.answer(number, Answer::Authenticated);
        None
    }

    /// Ends the session if its token is no longer in the list for the same identity. Bytes that
    /// wait are dropped, and the client is told why.
    pub(crate) fn check_token(&mut self, now_us: u64) -> Option<Fault> {
        let proof = self.proof.as_ref().filter(|it| !self.shared.tokens.has(it))?;
        if self.ends_us.is_some() {
            return None;
        }
        let name = &proof.identity.name;
        let text = format!("the token of {name} is no longer listed, or not for {name} as it was");
        Some(self.cut(Fault::new(Code::Authentication, text), now_us))
    }

    /// Sets the session's identity.
    pub(super) fn set_identity(&mut self, who: Option<Identity>) {
        self.head = format!("<message xmlns=\"{ENVELOPE}\"><meta><from>{CORE_NAME}</from>");
        if let Some(who) = &who {
            self.head.push_str("<to>");
            escape_text(&who.name, &mut self.head);
            self.head.push_str("</to>");
        }
        self.who = who;
    }
}

pub(super) fn is_authenticate(element: &Element) -> bool {
    element.local() == Authenticate::NAME.local() && matches!(element.namespace(), CORE | "")
}
