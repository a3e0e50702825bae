//go:build replicas

package e2e

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirlog/weir/shared/testenv"
)

// raises waits until an alert's metric is as wanted.
func (r *replicated) raises(alert, metric string, is func(values []float64) bool) {
	r.t.Helper()
	if !strings.Contains(expression(r.t, alert), metric) {
		r.t.Fatalf("%s does not go by %s", alert, metric)
	}
	r.await(setupTimeout, metric, is)
}

// await waits until a metric is as wanted.
func (r *replicated) await(limit time.Duration, metric string, is func(values []float64) bool) {
	r.t.Helper()
	testenv.Eventually(r.t, limit, func() error {
		values, err := r.shown(metric)
		if err == nil && !is(values) {
			err = fmt.Errorf("%s is %v", metric, values)
		}
		return err
	})
}

// grows waits until a counter of an alert has grown from now on.
func (r *replicated) grows(alert, metric string) {
	r.t.Helper()
	before, err := r.shown(metric)
	must(r.t, err)
	r.raises(alert, metric, func(now []float64) bool { return sum(now) > sum(before) })
}

// quiet fails the test if an alert's metric is not 0 everywhere.
func (r *replicated) quiet(alert, metric string) {
	r.t.Helper()
	r.raises(alert, metric, func(values []float64) bool { return len(values) > 0 && slices.Max(values) == 0 })
}

// processes returns the addresses of all replicas' metrics.
func (r *replicated) processes() (addresses []string) {
	for _, s := range r.services {
		for _, one := range s.replicas {
			addresses = append(addresses, one.metrics)
		}
	}
	return addresses
}

// shown returns the values of a metric's series, of all replicas.
func (r *replicated) shown(metric string) (values []float64, err error) {
	for _, s := range r.services {
		for _, one := range s.replicas {
			text, err := metricsAt(one.metrics)
			if err != nil {
				return nil, err
			}
			values = append(values, valuesOf(text, metric)...)
		}
	}
	return values, nil
}

func valuesOf(text, metric string) (values []float64) {
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name, _, _ = strings.Cut(name, "{"); name != metric {
			continue
		}
		value = value[strings.LastIndex(value, " ")+1:]
		if number, err := strconv.ParseFloat(value, 64); err == nil {
			values = append(values, number)
		}
	}
	return values
}

func sum(values []float64) (all float64) {
	for _, value := range values {
		all += value
	}
	return all
}
