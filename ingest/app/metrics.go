package app

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/ingest/internal/admission"
	"github.com/weirlog/weir/ingest/internal/http"
	"github.com/weirlog/weir/shared/bus"
)

// measureState measures the intake's state in memory.
func measureState(registerer prometheus.Registerer, gate *admission.Gate, intake *http.Intake) {
	metrics := promauto.With(registerer)
	gauge := func(name, help string, size func() int64) {
		metrics.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(size()) })
	}
	gauge("weir_ingest_quota_organizations", "Organizations whose quota and rate limits are held in memory.",
		func() int64 { return int64(gate.Organizations()) })
	gauge("weir_ingest_replicas", "Replicas of ingest among which quotas are divided near their end, as this one last counted them.",
		func() int64 { return int64(gate.Replicas()) })
	gauge("weir_ingest_rate_buckets", "Rate limits of projects and keys that are held in memory.",
		func() int64 { return int64(gate.Buckets()) })
	gauge("weir_ingest_client_buckets", "Rate limits of client networks without a valid key that are held in memory.",
		func() int64 { return int64(intake.Service.Clients.Len()) })
	gauge("weir_ingest_idempotency_keys", "Idempotency keys that are held in memory.",
		func() int64 { return int64(intake.Service.Replays.Len()) })
	measureBodies(registerer, intake.Bodies, "key")
	measureBodies(registerer, intake.AnonymousBodies, "none")
}

// measureLog measures whether the log has lost its end.
func measureLog(registerer prometheus.Registerer, intact func() error) {
	promauto.With(registerer).NewGaugeFunc(prometheus.GaugeOpts{
		Name: "weir_ingest_log_lost_end", Help: "1 while nothing is accepted because a log lacks records that were applied.",
	}, func() float64 {
		if bus.IsLostEnd(intact()) {
			return 1
		}
		return 0
	})
}

// measureBodies measures the memory of bodies; credential is where a
// request's key came.
func measureBodies(registerer prometheus.Registerer, bodies *http.Bodies, credential string) {
	metrics := promauto.With(prometheus.WrapRegistererWith(prometheus.Labels{"credential": credential}, registerer))
	gauge := func(name, help string, labels prometheus.Labels, size func(http.BodyUse) int64) {
		metrics.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, func() float64 { return float64(size(bodies.Use())) })
	}
	counter := func(reason string, count func(http.BodyUse) int64) {
		metrics.NewCounterFunc(prometheus.CounterOpts{
			Name: "weir_ingest_refused_bodies_total",
			Help: "Bodies that were not read to their end: no memory came free, their sender had too many under way or was over its share, others needed their " +
				"memory, or they came too slowly.",
			ConstLabels: prometheus.Labels{"reason": reason},
		}, func() float64 { return float64(count(bodies.Use())) })
	}
	const bytes, bytesHelp = "weir_ingest_in_flight_bytes", "Memory that is lent to bodies of requests under way, decompression included."
	gauge(bytes, bytesHelp, prometheus.Labels{"size": "small"}, func(u http.BodyUse) int64 { return u.SmallBytes })
	gauge(bytes, bytesHelp, prometheus.Labels{"size": "large"}, func(u http.BodyUse) int64 { return u.LargeBytes })
	gauge("weir_ingest_in_flight_bodies", "Bodies of requests under way that hold memory or wait for it.", nil, func(u http.BodyUse) int64 { return u.UnderWay })
	gauge("weir_ingest_waiting_bodies", "Bodies that wait for memory.", nil, func(u http.BodyUse) int64 { return u.Waiting })
	counter("memory", func(u http.BodyUse) int64 { return u.Full })
	gauge("weir_ingest_throttled_bodies", "Bodies that wait for their organization's share of bytes a second.", nil,
		func(u http.BodyUse) int64 { return u.Throttled })
	metrics.NewCounterFunc(prometheus.CounterOpts{
		Name: "weir_ingest_throttled_seconds_total", Help: "How long bodies have waited for their organization's share of bytes a second.",
	}, func() float64 { return bodies.Use().WaitedForShare.Seconds() })
	counter("requests", func(u http.BodyUse) int64 { return u.TooMany })
	counter("share", func(u http.BodyUse) int64 { return u.OverShare })
	counter("fairness", func(u http.BodyUse) int64 { return u.Taken })
	counter("slow", func(u http.BodyUse) int64 { return u.Slow })
}
