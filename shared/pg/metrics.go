package pg

import (
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
)

// Measure shows the use of pools, each named by its purpose, such as "writes".
func Measure(registerer prometheus.Registerer, pools map[string]*pgxpool.Pool) {
	if registerer != nil {
		registerer.MustRegister(poolStats(pools))
	}
}

// poolStats collects the state of pools at a scrape.
type poolStats map[string]*pgxpool.Pool

var (
	poolConnections = prometheus.NewDesc("weir_postgres_connections", "Connections to PostgreSQL: used by a transaction, or idle.", []string{"pool", "state"}, nil)
	poolLimit       = prometheus.NewDesc("weir_postgres_connections_limit", "How many connections to PostgreSQL a pool may have.", []string{"pool"}, nil)
	poolWaits       = prometheus.NewDesc("weir_postgres_connection_waits_total", "Waits for a free connection or a new one.",
		[]string{"pool"}, nil)
	poolWaited = prometheus.NewDesc("weir_postgres_connection_wait_seconds_total", "How long they waited in all.", []string{"pool"}, nil)
)

func (poolStats) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{poolConnections, poolLimit, poolWaits, poolWaited} {
		out <- desc
	}
}

func (s poolStats) Collect(out chan<- prometheus.Metric) {
	for name, pool := range s {
		stat := pool.Stat()
		gauge := func(desc *prometheus.Desc, value int32, labels ...string) {
			out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), append([]string{name}, labels...)...)
		}
		gauge(poolConnections, stat.AcquiredConns(), "used")
		gauge(poolConnections, stat.IdleConns(), "idle")
		gauge(poolLimit, stat.MaxConns())
		out <- prometheus.MustNewConstMetric(poolWaits, prometheus.CounterValue, float64(stat.EmptyAcquireCount()), name)
		out <- prometheus.MustNewConstMetric(poolWaited, prometheus.CounterValue, stat.EmptyAcquireWaitTime().Seconds(), name)
	}
}
