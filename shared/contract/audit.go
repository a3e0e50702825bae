package contract

import (
	"strings"
	"time"
)

// ChangeReported is a fact for the audit: a person or a program changed what
// another module than tenants keeps. It is on that module's topic; webhooks
// get none.
type ChangeReported struct {
	Organization string            `json:"organization"`
	Project      string            `json:"project"`
	Action       string            `json:"action"` // such as error_rules.set; it is stored
	Target       ReportedTarget    `json:"target"`
	Actor        string            `json:"actor"`             // id of the member or API key
	Request      string            `json:"request,omitempty"` // its id
	Address      string            `json:"address,omitempty"` // where it came from
	Client       string            `json:"client,omitempty"`  // its User-Agent, at most MaxClient bytes
	Before       map[string]string `json:"before,omitempty"`  // of what has changed, by words that people read: see Reported
	After        map[string]string `json:"after,omitempty"`
	At           time.Time         `json:"at"`
}

// maxReported is how many bytes of a text are reported.
const maxReported = 4 << 10

// Reported are the texts that there are, each clipped: what a ChangeReported has Before or After.
func Reported(texts map[string]string) map[string]string {
	reported := map[string]string{} // bounded by the texts
	for name, text := range texts {
		if len(text) > maxReported {
			text = strings.ToValidUTF8(text[:maxReported], "") + "… and more"
		}
		if text != "" {
			reported[name] = text
		}
	}
	return reported
}

// A ReportedTarget is what was changed.
type ReportedTarget struct {
	Kind string `json:"kind"`
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
}
