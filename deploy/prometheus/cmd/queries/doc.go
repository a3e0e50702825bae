// Command queries prints the queries of Grafana's dashboards and of runbooks as
// rules, one record for each, so that promtool checks them: make verify does.
// It reads the files that it is given and nothing else.
package main
