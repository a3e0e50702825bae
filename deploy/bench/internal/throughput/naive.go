package throughput

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirlog/weir/deploy/bench/internal/naive"
	"github.com/weirlog/weir/deploy/bench/internal/subject"
	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/deploy/localca"
	"github.com/weirlog/weir/shared/measure"
)

// beside measures the naive server on the same brokers, as a process of its
// own, under the loads of other phases.
func (r *run) beside(ctx context.Context, brokers []string, phases []phase) (found []phase, err error) {
	subject.Say("  the same with a naive server")
	server, address, err := naive.Start(ctx, naive.Task{Dir: r.dir, Brokers: brokers})
	if err != nil {
		return nil, fmt.Errorf("naive server: %w", err)
	}
	defer func() {
		_, stopped := server.Stop()
		err = errors.Join(err, stopped)
	}()
	api, err := client.New("https://"+address, localca.In(r.dir).CA, r.scale.senders)
	if err != nil {
		return nil, err
	}
	defer api.Close()
	processes := append([]measure.Process{{Pid: server.Pid}, {}}, r.processes[node:]...)
	loads := []measure.Load{r.load(r.scale.warmUp, 0), r.load(r.Saturated, 0)}
	for _, p := range phases[1:] {
		loads = append(loads, r.load(r.scale.paced, p.perSecond))
	}
	for _, load := range loads {
		p, err := r.send(ctx, load, processes, func(ctx context.Context, body *subject.Body, number int64, _ time.Time) error {
			_, err := api.Post(ctx, fmt.Sprintf("key %d", number%int64(r.scale.organizations)), client.Batch{Body: body.Text})
			return err
		})
		if err != nil {
			return nil, err
		}
		found = append(found, p)
	}
	return found[1:], nil
}
