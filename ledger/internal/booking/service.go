package booking

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/ledger"
)

// A Service books accepted logs and the outcomes of requests. It writes
// in the caller's transaction, which sees all organizations.
type Service struct {
	overshoot prometheus.Counter
}

// New returns a service; with nil metrics are not registered.
func New(metrics prometheus.Registerer) *Service {
	return &Service{overshoot: promauto.With(metrics).NewCounter(prometheus.CounterOpts{
		Name: "weir_ledger_overshoot_bytes_total",
		Help: "Bytes that were accepted beyond what plans allow, which the operator bears; again where a transaction was rolled back.",
	})}
}

// countOvershoot adds the overshoot of opened books to the metric.
func (s *Service) countOvershoot(opened map[string]*ledger.Books) {
	for _, books := range opened {
		for _, transfer := range books.Transfers {
			if transfer.To == ledger.Overshoot {
				s.overshoot.Add(float64(transfer.Amount))
			}
		}
	}
}
