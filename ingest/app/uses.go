package app

import (
	"cmp"
	"context"
	"log/slog"

	"github.com/google/uuid"

	"github.com/weirlog/weir/ingest/internal/bus"
	"github.com/weirlog/weir/ingest/internal/outcomes"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/keyfact"
	"github.com/weirlog/weir/shared/service"
)

// uses counts uses of keys and outcomes of requests, and publishes them.
type uses struct {
	meter    *keyfact.Meter
	outcomes *outcomes.Meter
	watch    *keyfact.Watch // of keys sent over plain HTTP
	facts    *keyfact.Publisher
	logger   *slog.Logger
}

func newUses(config Config, base *service.Base, credentials *identity.Credentials) *uses {
	u := &uses{logger: base.Logger}
	u.facts = &keyfact.Publisher{Bus: base.Publisher, Source: bus.Source, Clock: base.Clock, Logger: base.Logger}
	u.meter = keyfact.NewMeter(base.Clock)
	u.meter.Measure(base.Metrics)
	u.outcomes = outcomes.NewMeter(outcomes.Config{
		Process: uuid.NewString(), Interval: cmp.Or(config.OutcomesInterval, defaultOutcomes), Clock: base.Clock,
		To: &bus.Outcomes{Bus: base.Publisher, Clock: base.Clock},
	})
	u.outcomes.Measure(base.Metrics)
	u.watch = keyfact.NewWatch(credentials, u.facts.Exposed, base.Clock, base.Logger)
	return u
}

func (u *uses) loops() []func(context.Context) error {
	publish := func(ctx context.Context) error { return u.meter.Run(ctx, u.facts.Used) }
	return []func(context.Context) error{publish, u.outcomes.Run, u.watch.Run}
}

// finish publishes what the last requests came to.
func (u *uses) finish() {
	if err := u.outcomes.Finish(); err != nil {
		u.logger.Warn("what became of the last requests is perhaps not published", slog.String("error", err.Error()))
	}
	u.meter.Finish(u.facts.Used)
}
