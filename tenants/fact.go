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
	Project      string // empty: none
	Time         time.Time
	Data         json.RawMessage
}
