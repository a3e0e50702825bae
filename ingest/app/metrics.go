package app

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/ingest/internal/admission"
	"github.com/weirlog/weir/ingest/internal/http"
)

// measureState shows how much the intake holds in memory to judge requests by.
func measureState(registerer prometheus.Registerer, gate *admission.Gate, intake *http.Intake) {
	metrics := promauto.With(registerer)
	gauge := func(name, help string, size func() int64) {
		metrics.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(size()) })
	}
	gauge("weir_ingest_quota_organizations", "Organizations whose quota and rate limits are held in memory.",
		func() int64 { return int64(gate.Organizations()) })
	gauge("weir_ingest_rate_buckets", "Rate limits of projects and keys that are held in memory.",
		func() int64 { return int64(gate.Buckets()) })
	gauge("weir_ingest_client_buckets", "Rate limits of client networks without a valid key that are held in memory.",
		func() int64 { return int64(intake.Clients.Len()) })
	gauge("weir_ingest_idempotency_keys", "Idempotency keys that are held in memory.",
		func() int64 { return int64(intake.Replays.Len()) })
	gauge("weir_ingest_in_flight_bytes", "Memory that is lent to bodies of requests under way.", intake.Bodies.Buffers.Lent)
}
