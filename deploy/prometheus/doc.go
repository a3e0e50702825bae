// Package prometheus holds what Prometheus goes by: the objectives (slo.yaml),
// the alerts (alerts.yaml), and what promtool tests them with (*_test.yaml).
// Its tests hold alerts, runbooks and dashboards against each other and against
// the page of all metrics. It imports nothing of Weir.
package prometheus
