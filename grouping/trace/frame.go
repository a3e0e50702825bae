package trace

// Frame is one call of a stack trace. Its strings share the memory of the text that was sent, or of the Trace, see Trace.Keep.
type Frame struct {
	Module   string // class, package or type that holds the function; "" where the language prints none
	Function string // name of the function; "" where the line has none
	File     string // path, URL or name of the source; "" where the line has none
	Line     int    // 1-based; 0 is unknown
	Column   int    // 1-based; 0 is unknown
	InApp    bool   // the frame is the sender's own code rather than a library's or the runtime's
	Rule     uint8  // number of the project's rule that says so, from 1; 0: none does
	Library  Reason // why it is a library's; "" for own code

	Printed *Printed // of a call of a built script, see Trace.Read
}

// Reason is why a frame does not count as the sender's own code. Reasons are stored and shown, so they are never
// renamed.
type Reason string

// The reasons.
const (
	ByPath   Reason = "path"    // its file lies where libraries are installed
	ByName   Reason = "known"   // its package, file or function is of a known library or the runtime
	ByErrors Reason = "learned" // few errors of the project go through its package
	ByRule   Reason = "rule"    // a rule of the project says so, or that the frame does not count at all
)

// Exception is one error of a chain: what was thrown and the calls that led there, the innermost call first.
type Exception struct {
	Type    string
	Message string
	Frames  []Frame
	More    int // frames that were parsed beyond these
}
