// Package prometheus holds Prometheus's rules: the objectives (slo.yaml),
// the alerts (alerts.yaml), and their tests for promtool (*_test.yaml).
// It imports nothing of Weir; its tests compare alerts, runbooks and
// dashboards with each other and with the page of all metrics.
package prometheus
