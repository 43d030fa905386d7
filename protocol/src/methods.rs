//! The method table.

/// Who sends a method and whether it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MethodKind {
    /// Client to server, answered.
    Request,
    /// Client to server, as a notification or as a request that is answered with `null`.
    Event,
    /// Client to server, never answered.
    Notification,
    /// Server to client, answered.
    ServerRequest,
    /// Server to client, not answered.
    ServerNotification,
}

/// One row of the table.
#[derive(Debug)]
pub struct Method {
    /// The name on the wire.
    pub name: &'static str,
    /// Who sends it and whether it is answered.
    pub kind: MethodKind,
    /// The protocol version that brought it.
    pub since: u32,
}

/// The row of a method, if the protocol has it.
pub fn find(name: &str) -> Option<&'static Method> {
    METHODS.iter().find(|method| method.name == name)
}

/// All methods of the protocol.
pub static METHODS: &[Method] = &[
    Method { name: "session/list", kind: MethodKind::Request, since: 1 },
    Method { name: "session/open", kind: MethodKind::Request, since: 1 },
    Method { name: "reminder/wait", kind: MethodKind::Request, since: 1 },
    Method { name: "turn/begin", kind: MethodKind::Event, since: 1 },
    Method { name: "diagnostic/publish", kind: MethodKind::Event, since: 1 },
    Method { name: "tool/begin", kind: MethodKind::Event, since: 1 },
];
