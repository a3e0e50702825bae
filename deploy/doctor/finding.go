package doctor

// A Level is how bad a finding is.
type Level string

// The levels. What works now and may stop working, or is not as
// safe as it should be, is a warning.
const (
	OK   Level = "ok"
	Warn Level = "warn"
	Fail Level = "fail"
)

// A Finding is what one look has shown.
type Finding struct {
	Check   string `json:"check"`   // such as topic
	Subject string `json:"subject"` // such as weir.logs.v1
	Level   Level  `json:"level"`
	Seen    string `json:"seen"`          // with values
	Fix     string `json:"fix,omitempty"` // what to do, unless it is well
}
