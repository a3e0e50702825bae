// Package prometheus holds what Prometheus goes by: the objectives
// (slo.yaml), the alerts (alerts.yaml), and what promtool tests them with
// (*_test.yaml). It imports nothing of Weir; its tests hold alerts, runbooks
// and dashboards against each other and against the page of all metrics.
package prometheus
