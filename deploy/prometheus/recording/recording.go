package recording

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Durations of phases in a recording, in minutes, and the scrapes of each.
const (
	baseline     = 6*60 + 30 // as far as urgent alerts look back
	FaultMinutes = 30        // a fault
	scrapes      = 12        // longer than brokers let a reader wait at the end of a log
	pause        = time.Second
)

// A Recording is what Prometheus would have seen of processes if each
// phase had lasted for minutes.
type Recording struct {
	rules     []string        // files
	judged    map[string]bool // metrics in the rules
	minutes   int
	timelines map[string]*timeline
}

var metric = regexp.MustCompile(`\b(?:weir|process)_[a-z_]+[a-z]\b`)

// Begin begins a recording for rules, given as files, with undisturbed
// processes. It takes seconds, and so does each phase.
func Begin(ctx context.Context, processes []string, rules ...string) (*Recording, error) {
	r, err := of(rules...)
	if err != nil {
		return nil, err
	}
	return r, r.Phase(ctx, baseline, processes)
}

// of returns a recording for rules, without a phase.
func of(rules ...string) (*Recording, error) {
	r := &Recording{judged: map[string]bool{"up": true}, timelines: map[string]*timeline{}}
	for _, file := range rules {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, name := range metric.FindAllString(string(text), -1) {
			r.judged[name] = true
		}
		absolute, err := filepath.Abs(file) // promtool's test file lies elsewhere
		if err != nil {
			return nil, err
		}
		r.rules = append(r.rules, absolute)
	}
	return r, nil
}

// Phase appends so many minutes of what the processes, given by their
// metrics' addresses, show now.
func (r *Recording) Phase(ctx context.Context, minutes int, processes []string) error {
	taken := make([]scrape, scrapes)
	for i := range taken {
		if i > 0 {
			time.Sleep(pause) // a pace, not a wait
		}
		taken[i] = take(ctx, processes)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("the phase is not whole: %w", ctx.Err())
	}
	r.add(minutes, taken)
	return nil
}

func (r *Recording) add(minutes int, taken []scrape) {
	until := taken[len(taken)-1].at
	for series, values := range bySeries(taken) {
		if !r.judged[nameOf(series)] {
			continue
		}
		s := r.timelines[series]
		if s == nil {
			s = &timeline{}
			r.timelines[series] = s
		}
		s.missing(r.minutes)
		s.play(nameOf(series), values, minutes, until)
	}
	r.minutes += minutes
	for _, s := range r.timelines {
		s.missing(r.minutes)
	}
}

// bySeries returns the values of the series that exist at the end.
func bySeries(taken []scrape) map[string][]float64 {
	all := map[string][]float64{}
	for series := range taken[len(taken)-1].shown {
		for _, one := range taken {
			if value, there := one.shown[series]; there {
				all[series] = append(all[series], value)
			}
		}
	}
	return all
}

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

// A timeline is one series of a recording, with a sample for each minute.
type timeline struct {
	samples []float64 // NaN: none
	last    float64   // last scraped value of a counter
}

// missing makes the series absent until then.
func (s *timeline) missing(minutes int) {
	for len(s.samples) < minutes {
		s.samples = append(s.samples, math.NaN())
	}
}

// play extends a scraped series by so many minutes. Counters keep their
// rate and timestamps their distance from now; so does a value that
// rises above all before. All else repeats its changes.
func (s *timeline) play(name string, values []float64, minutes int, until time.Time) {
	first, last := values[0], values[len(values)-1]
	pace := (last - first) / float64(max(1, len(values)-1)) * float64(time.Minute/pause)
	switch {
	case isCounter(name):
		s.line(s.continued(first), max(0, pace), minutes)
		s.last = last
	case strings.HasSuffix(name, "_timestamp_seconds") && last != 0:
		s.line(60*float64(len(s.samples))+last-float64(until.Unix()), 60, minutes)
	case s.exceeded(values):
		s.line(first, pace, minutes)
	default:
		for i := range minutes {
			s.samples = append(s.samples, values[i%len(values)])
		}
	}
}

func (s *timeline) line(from, pace float64, minutes int) {
	for i := range minutes {
		s.samples = append(s.samples, from+pace*float64(i))
	}
}

// continued returns where a counter with a current value continues: its
// last sample plus what it has counted since. A restarted one begins at 0.
func (s *timeline) continued(now float64) float64 {
	for _, sample := range slices.Backward(s.samples) {
		if math.IsNaN(sample) {
			continue
		}
		if now < s.last {
			return now
		}
		return sample + now - s.last
	}
	return now
}

func isCounter(name string) bool {
	return slices.ContainsFunc([]string{"_total", "_bucket", "_count", "_sum"}, func(end string) bool { return strings.HasSuffix(name, end) })
}

// exceeded reports whether values rise above all before them, never
// fall, and rise more often than not.
func (s *timeline) exceeded(values []float64) bool {
	if len(s.samples) == 0 {
		return false
	}
	for _, sample := range s.samples {
		if sample >= values[len(values)-1] {
			return false
		}
	}
	rose := 0
	for i, value := range values[1:] {
		if value > values[i] {
			rose++
		}
	}
	return slices.IsSorted(values) && 2*rose >= len(values)
}

// String returns the timeline in promtool's format.
func (s *timeline) String() string {
	words := make([]string, len(s.samples))
	for i, sample := range s.samples {
		words[i] = "_"
		if !math.IsNaN(sample) {
			words[i] = strings.TrimPrefix(strconv.FormatFloat(sample, 'f', -1, 64), "+") // of an infinity
		}
	}
	return strings.Join(words, " ")
}

// Promtool's input: YAML, of which JSON is a part.
type (
	tests struct {
		RuleFiles []string `json:"rule_files"`
		Interval  string   `json:"evaluation_interval"`
		Tests     []played `json:"tests"`
	}
	played struct {
		Interval string   `json:"interval"`
		Series   []series `json:"input_series"`
		Queries  []query  `json:"promql_expr_test"`
	}
	series struct {
		Series string `json:"series"`
		Values string `json:"values"`
	}
	query struct {
		Expr    string   `json:"expr"`
		At      string   `json:"eval_time"`
		Samples []sample `json:"exp_samples"`
	}
	sample struct {
		Labels string  `json:"labels"`
		Value  float64 `json:"value"`
	}
)

// Judge returns an error with the firing alerts if an alert fires
// before the fault, or not exactly these do from then on. promtool is
// the command, with what precedes its own arguments.
func (r *Recording) Judge(ctx context.Context, promtool string, alerts []string) error {
	file, err := r.write(alerts)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file) }()
	command := append(strings.Fields(promtool), "test", "rules", file)
	said, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput() //nolint:gosec // of the Makefile
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", promtool, err, said)
	}
	return nil
}

func (r *Recording) write(alerts []string) (name string, err error) {
	text, err := json.Marshal(tests{RuleFiles: r.rules, Interval: "1m", Tests: []played{r.played(alerts)}})
	if err != nil {
		return "", err
	}
	file, err := os.CreateTemp("", "recording-*.yaml")
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	_, err = file.Write(text)
	return file.Name(), err
}

func (r *Recording) played(alerts []string) played {
	all := played{Interval: "1m", Queries: []query{raised(0, baseline, nil), raised(baseline, r.minutes, alerts)}}
	for name, s := range r.timelines {
		all.Series = append(all.Series, series{Series: name, Values: s.String()})
	}
	return all
}

// raised queries the alerts that fire at any time between two minutes.
func raised(from, to int, alerts []string) query {
	asked := query{Expr: fmt.Sprintf(`group by (alertname) (last_over_time(ALERTS{alertstate="firing"}[%dm]))`, to-from), At: fmt.Sprintf("%dm", to-1)}
	for _, alert := range alerts {
		asked.Samples = append(asked.Samples, sample{Labels: fmt.Sprintf("{alertname=%q}", alert), Value: 1})
	}
	return asked
}
