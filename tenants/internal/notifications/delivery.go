package notifications

import (
	"time"

	"github.com/weirlog/weir/tenants"
)

// A State is the state of a delivery.
type State string

// The states. They are part of responses and tables.
const (
	Pending State = "pending"
	Taken   State = "taken"
	Failed  State = "failed" // no longer tried
)

// States lists all of them.
func States() []State { return []State{Pending, Taken, Failed} }

// failureOff is why nothing was sent to a webhook that was off.
const failureOff = "The webhook was switched off."

// A Delivery is one message to one webhook, or by mail to one member.
type Delivery struct {
	Organization string
	ID           string
	Webhook      string // id; empty: mail
	Member       string // id; empty: to a webhook
	Type         string
	Body         string
	CreatedAt    time.Time
	State        State
	BegunAt      time.Time
	NextAt       time.Time
	Attempts     int
	AttemptedAt  time.Time // zero: never
	Status       int       // of the last attempt; 0: no answer
	Answer       string    // its beginning
	Failure      string    // why there was no answer
}

// A due delivery is to be sent now.
type due struct {
	Delivery
	to     tenants.Webhook
	reader addressee
}
