package app

import (
	"context"

	"github.com/weirlog/weir/grouping/internal/bus"
	"github.com/weirlog/weir/shared/bus/state"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/keyfact"
	"github.com/weirlog/weir/shared/service"
)

// keys are the credentials of clients, and what is seen of their uses.
type keys struct {
	*identity.Credentials
	reader    *state.Reader
	plaintext *keyfact.Watch
	meter     *keyfact.Meter
	facts     *keyfact.Publisher
}

func newKeys(config Config, base *service.Base) keys {
	k := keys{Credentials: config.NewCredentials(), meter: keyfact.NewMeter(base.Clock)}
	k.reader = k.Follow(base.States, base.Logger)
	k.facts = &keyfact.Publisher{Bus: base.Publisher, Source: bus.Outbox().Source, Clock: base.Clock, Logger: base.Logger}
	k.meter.Measure(base.Metrics)
	k.plaintext = keyfact.NewWatch(k.Credentials, k.facts.Exposed, base.Clock, base.Logger)
	return k
}

func (k *keys) publishUses(ctx context.Context) error { return k.meter.Run(ctx, k.facts.Used) }
