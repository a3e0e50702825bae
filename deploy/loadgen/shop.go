package loadgen

import (
	_ "embed"
	"encoding/json"
	"sync"
)

// A service is one program of the imagined shop. Texts are templates (see
// dice.expand).
type service struct {
	Name     string
	Hosts    int
	Routine  []string // its lines when all is well
	Worries  []string // its warnings
	Failures []failure
}

// A failure is one mistake in a program: it is one kind of error
// however often it happens, with any ids, on any host and a few lines
// up or down between releases.
type failure struct {
	Log     string // the service's log line
	Kind    string // the error's class
	Message string
	Frames  []string
}

// shop is the services, one of each language whose stack traces Weir parses.
//
//go:embed shop.json
var shop []byte

var services = sync.OnceValue(func() (all []service) {
	if err := json.Unmarshal(shop, &all); err != nil {
		panic(err) // it is part of the program
	}
	return all
})
