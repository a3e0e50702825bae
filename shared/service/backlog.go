package service

import (
	"math"

	"github.com/weirlog/weir/shared/bus/consumer"
	"github.com/weirlog/weir/shared/httpapi"
)

// A Consuming is a consumer and what it is called in public.
type Consuming struct {
	Part     string
	Consumer *consumer.Consumer
}

// Backlogs returns those that catch up, for /readyz.
func Backlogs(all ...Consuming) (behind []httpapi.Backlog) {
	for _, one := range all {
		if b, exists := one.Consumer.Backlog(); exists && b.Records > 0 {
			behind = append(behind, httpapi.Backlog{Part: one.Part, Done: math.Floor(100*b.Done) / 100, SecondsLeft: math.Ceil(b.Left.Seconds())})
		}
	}
	return behind
}
