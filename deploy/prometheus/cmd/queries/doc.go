// Command queries prints the queries of Grafana's dashboards and of
// runbooks as rules, one record for each, so that promtool checks them:
// make verify does. It reads only the given files.
package main
