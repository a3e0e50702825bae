package contract

import "time"

// ErrorGroupCreated is a fact on weir.grouping.v1: a new kind of
// error was seen.
type ErrorGroupCreated struct {
	Organization string    `json:"organization"`
	Project      string    `json:"project"`
	Group        string    `json:"group"`
	Title        string    `json:"title"`
	Type         string    `json:"type"`
	Culprit      string    `json:"culprit"`
	FirstSeen    time.Time `json:"first_seen"`
}
