package tenants

import (
	"encoding/json"
	"time"
)

// A Fact is what another module published about an organization,
// for webhooks and mails.
type Fact struct {
	ID           string // of its event
	Name         string // by which webhooks ask for it
	Organization string
	Project      string // empty: it is of none
	Time         time.Time
	Data         json.RawMessage
}
