package contract

import "time"

// ChangeReported is a fact for the audit: a person or a program changed what
// another module than tenants keeps. It is on that module's topic; webhooks
// get none. A text in Before or After has hardly more than 4 KB.
type ChangeReported struct {
	Organization string            `json:"organization"`
	Project      string            `json:"project"`
	Action       string            `json:"action"` // such as error_rules.set; it is stored
	Target       ReportedTarget    `json:"target"`
	Actor        string            `json:"actor"`             // id of the member or API key
	Request      string            `json:"request,omitempty"` // its id
	Address      string            `json:"address,omitempty"` // where it came from
	Client       string            `json:"client,omitempty"`  // its User-Agent, at most MaxClient bytes
	Before       map[string]string `json:"before,omitempty"`  // of what has changed, by words that people read
	After        map[string]string `json:"after,omitempty"`
	At           time.Time         `json:"at"`
}

// A ReportedTarget is what was changed.
type ReportedTarget struct {
	Kind string `json:"kind"`
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
}
