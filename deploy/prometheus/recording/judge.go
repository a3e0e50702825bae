package recording

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

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
