package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	kafka "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/describegroups"
	"github.com/segmentio/kafka-go/protocol/findcoordinator"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/broker"
	"github.com/weirlog/weir/shared/lifecycle"
)

// Members counts the running members of consumer groups.
func Members(ctx context.Context, brokers []string, dialer *bus.Dialer, groups []string) (map[string]int, error) {
	c := broker.NewCluster(brokers, dialer)
	defer c.Close()
	found := map[string]int{}
	for _, group := range groups {
		members, err := membersOf(ctx, c, group)
		if err != nil {
			return nil, fmt.Errorf("cannot see who is in the group %q (ACL: Describe): %w", group, err)
		}
		found[group] = members
	}
	return found, nil
}

// membersOf retries until the coordinator is found: brokers that just
// started create the topic of groups first.
func membersOf(ctx context.Context, c *broker.Cluster, group string) (n int, err error) {
	const tries, pause = 20, 500 * time.Millisecond
	for range tries {
		if n, err = askMembers(ctx, c, group); !isStarting(err) {
			return n, err
		}
		lifecycle.Pause(ctx, pause)
	}
	return n, err
}

func isStarting(err error) bool {
	return errors.Is(err, kafka.GroupCoordinatorNotAvailable) || errors.Is(err, kafka.GroupLoadInProgress) || errors.Is(err, kafka.NotCoordinatorForGroup)
}

func askMembers(ctx context.Context, c *broker.Cluster, group string) (int, error) {
	answer, err := c.Ask(ctx, &findcoordinator.Request{Key: group})
	if err != nil {
		return 0, err
	}
	at := answer.(*findcoordinator.Response)
	if at.ErrorCode != 0 {
		return 0, kafka.Error(at.ErrorCode)
	}
	conn, err := broker.Connect(ctx, c.Dialer, net.JoinHostPort(at.Host, strconv.Itoa(int(at.Port))))
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	answer, err = conn.RoundTrip(ctx, broker.RequestTimeout, &describegroups.Request{Groups: []string{group}})
	if err != nil {
		return 0, err
	}
	members := 0
	for _, seen := range answer.(*describegroups.Response).Groups {
		if seen.ErrorCode != 0 {
			return 0, kafka.Error(seen.ErrorCode)
		}
		members += len(seen.Members)
	}
	return members, nil
}
