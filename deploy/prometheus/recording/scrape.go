package recording

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// A scrape holds processes' metrics at one time, by series as in Prometheus.
type scrape struct {
	at    time.Time
	shown map[string]float64
}

// job is the processes' name in the rules.
const job = "weir"

// take scrapes processes, by the addresses of their metrics. One that
// does not answer is down.
func take(ctx context.Context, processes []string) scrape {
	seen := scrape{at: time.Now(), shown: map[string]float64{}}
	for _, address := range processes {
		target := model.LabelSet{model.InstanceLabel: model.LabelValue(address), model.JobLabel: job}
		samples, err := samplesOf(ctx, address)
		up := &model.Sample{Metric: model.Metric{model.MetricNameLabel: "up"}, Value: 1}
		if err != nil {
			up.Value = 0
		}
		seen.add(target, append(samples, up))
	}
	return seen
}

func (s scrape) add(target model.LabelSet, samples model.Vector) {
	for _, sample := range samples {
		series := model.Metric(target.Merge(model.LabelSet(sample.Metric)))
		s.shown[series.String()] = float64(sample.Value)
	}
}

func samplesOf(ctx context.Context, address string) (model.Vector, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(answer.Body)
	if err != nil {
		return nil, err
	}
	return expfmt.ExtractSamples(&expfmt.DecodeOptions{}, slices.Collect(maps.Values(families))...)
}

// nameOf returns the name of a series' metric.
func nameOf(series string) string {
	name, _, _ := strings.Cut(series, "{")
	return name
}
