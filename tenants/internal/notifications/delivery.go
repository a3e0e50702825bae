package notifications

import (
	"time"

	"github.com/weirlog/weir/tenants"
)

// A State is what became of a delivery.
type State string

// The states. They are data: they stand in responses and tables.
const (
	Pending State = "pending"
	Taken   State = "taken"
	Failed  State = "failed" // is not tried any more
)

// States lists all of them.
func States() []State { return []State{Pending, Taken, Failed} }

// failureOff is why nothing was sent to a webhook that was off.
const failureOff = "The webhook was switched off."

// A Delivery is one message to one webhook, or by mail to one member.
type Delivery struct {
	Organization string
	ID           string
	Webhook      string // id; empty: it goes by mail
	Member       string // id; empty: it goes to a webhook
	Type         string
	Body         string
	CreatedAt    time.Time
	State        State
	BegunAt      time.Time
	NextAt       time.Time
	Attempts     int
	AttemptedAt  time.Time // zero: never
	Status       int       // of the last attempt; 0: there was no answer
	Answer       string    // how it began
	Failure      string    // why there was none
}

// A due delivery is one to be sent now, with where to.
type due struct {
	Delivery
	to     tenants.Webhook
	reader addressee
}
