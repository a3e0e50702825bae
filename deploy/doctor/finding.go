package doctor

// A Level is the severity of a finding.
type Level string

// The levels. A warning is for what works now and may stop, or is less
// safe than it should be.
const (
	OK   Level = "ok"
	Warn Level = "warn"
	Fail Level = "fail"
)

// A Finding is the result of one check.
type Finding struct {
	Check   string `json:"check"`   // such as topic
	Subject string `json:"subject"` // such as weir.logs.v1
	Level   Level  `json:"level"`
	Seen    string `json:"seen"`          // with values
	Fix     string `json:"fix,omitempty"` // the remedy, unless it is ok
}
