package tenants

import (
	"encoding/json"
	"time"
)

// A Fact is what another module published about
// an organization, for webhooks and mails.
type Fact struct {
	ID           string // of its event
	Name         string // by which webhooks subscribe
	Organization string
	Project      string    // empty: none
	Time         time.Time // when it happened: on the clock of a test, or as a client says
	Published    time.Time // real, in milliseconds
	Data         json.RawMessage
}
