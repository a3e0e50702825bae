package trace

// Frame is one call of a stack trace. Its strings
// share the memory of the text that was sent.
type Frame struct {
	Module   string // class, package or type that holds the function; "" where the language prints none
	Function string // name of the function; "" where the line has none
	File     string // path, URL or name of the source; "" where the line has none
	Line     int    // 1-based; 0 is unknown
	Column   int    // 1-based; 0 is unknown
	InApp    bool   // the frame is the sender's own code rather than a library's or the runtime's
}

// Exception is one error of a chain: what was thrown and the calls
// that led there, the innermost call first.
type Exception struct {
	Type    string
	Message string
	Frames  []Frame
	More    int // frames that were parsed beyond these
}
