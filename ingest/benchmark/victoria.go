package benchmark

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/measure"
)

// victoria is VictoriaLogs with its defaults: streams are services on hosts.
type victoria struct {
	program *measure.Program
	address string
	data    string
}

func newVictoria(ctx context.Context, path, dir string) (*victoria, error) {
	if path == "" {
		return nil, errors.New("no program was given by --victoria")
	}
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	v := &victoria{address: listener.Addr().String(), data: filepath.Join(dir, "victoria-logs")}
	if err := listener.Close(); err != nil {
		return nil, err
	}
	v.program, err = measure.Start(dir, path, "-envflag.enable", nil, map[string]string{
		"httpListenAddr": v.address, "storageDataPath": v.data, "retentionPeriod": "100y", "futureRetention": "100y",
	})
	if err != nil {
		return nil, err
	}
	return v, v.program.Await(ctx, func(ctx context.Context) (bool, error) {
		_, err := v.call(ctx, "/health", nil, nil)
		return err == nil, nil
	})
}

// victoriaLogs is its name in the table.
const victoriaLogs = "VictoriaLogs"

func (*victoria) name() string { return victoriaLogs }

func (v *victoria) close() error {
	_, err := v.program.Stop()
	return err
}

func (v *victoria) processes(context.Context) []measure.Process {
	return []measure.Process{{Pid: v.program.Pid}, {}}
}

// call returns the answer's body.
func (v *victoria) call(ctx context.Context, path string, values url.Values, body io.Reader) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+v.address+path+"?"+values.Encode(), body)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode/100 != 2 {
		err = fmt.Errorf("%s: %s", answer.Status, text)
	}
	return text, err
}

func (v *victoria) keep(ctx context.Context, requests []request) error {
	var lines bytes.Buffer
	for _, r := range requests {
		lines.Write(r.lines)
	}
	_, err := v.call(ctx, "/insert/jsonline", url.Values{
		"_time_field": {"timestamp"}, "_msg_field": {"message"}, "_stream_fields": {"metadata.service,metadata.host"},
	}, &lines)
	return err
}

// settle waits until it has written and merged all that it would by itself.
func (v *victoria) settle(ctx context.Context) error {
	const flushed, look = 15 * time.Second, time.Second // it writes what was in memory for 5 s, and looks every 5 s
	if _, err := v.call(ctx, "/internal/force_flush", nil, nil); err != nil {
		return err
	}
	for lifecycle.Pause(ctx, flushed); ctx.Err() == nil; {
		busy := measure.CPU(v.processes(ctx)...)
		lifecycle.Pause(ctx, look)
		if busy(1)[0] < look/20 {
			break
		}
	}
	return ctx.Err()
}

func (*victoria) rest(context.Context) error { return nil }

func (v *victoria) size(context.Context) (all int64, parts string, err error) {
	bytes, err := measure.Bytes(v.data, func(string) string { return "all" })
	return bytes["all"], "", err
}

func (v *victoria) ask(ctx context.Context, a ask, measured measured) (answer, error) {
	query := "*"
	if a.logsQL != "" {
		query = a.logsQL
	}
	from, to := begins, begins.Add(24*time.Hour)
	if !a.from.IsZero() {
		from = a.from
	}
	if !a.to.IsZero() {
		to = a.to
	}
	query = fmt.Sprintf("_time:[%s, %s) %s", from.Format(time.RFC3339Nano), to.Format(time.RFC3339Nano), query)
	values := url.Values{}
	switch c := a.count; {
	case c == nil:
		query += " | fields _time, _msg"
		values.Set("limit", strconv.Itoa(pageSize))
		values.Set("offset", strconv.Itoa(a.page*pageSize))
	case c.every > 0:
		query += fmt.Sprintf(" | stats by (_time:%s, level) count() entries", c.every)
	case c.by != "":
		query += fmt.Sprintf(` | stats by (%q) count() entries`, c.by)
	default:
		query += " | stats count() entries"
	}
	values.Set("query", query)
	var text []byte
	err := measured(func() (err error) {
		text, err = v.call(ctx, "/select/logsql/query", values, nil)
		return err
	})
	if err != nil {
		return answer{}, err
	}
	return read(text, a.count)
}

// read reads lines of JSON.
func read(text []byte, c *count) (found answer, err error) {
	if c != nil {
		found.counts = map[string]int64{}
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		var line map[string]string
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return found, err
		}
		var at time.Time
		if line["_time"] != "" {
			if at, err = time.Parse(time.RFC3339Nano, line["_time"]); err != nil {
				return found, err
			}
		}
		if c == nil {
			found.times = append(found.times, at.UnixMilli())
			continue
		}
		n, err := strconv.ParseInt(line["entries"], 10, 64)
		if err != nil {
			return found, err
		}
		name := line[c.by]
		if c.every > 0 {
			name = bucketName(at, line["level"])
		}
		found.counts[name] = n
	}
	return found, nil
}
