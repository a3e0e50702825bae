package kafka

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A client killed while it joins a group leaves it when its session
// ends, so that others get its partitions.
func TestKilledWhileJoining(t *testing.T) {
	b := start(t, Config{})
	create(t, b.Addr(), "test.group")
	member := client(t, b.Addr(), kgo.ConsumerGroup("test.group"), kgo.ConsumeTopics("test.group"),
		kgo.HeartbeatInterval(300*time.Millisecond), kgo.SessionTimeout(6*time.Second), kgo.RebalanceTimeout(6*time.Second))
	go func() {
		for !member.PollFetches(t.Context()).IsClientClosed() && t.Context().Err() == nil {
		}
	}()
	awaitMembers(t, b.Addr(), 1)
	joinAndDie(t, b.Addr())
	awaitMembers(t, b.Addr(), 2)
	awaitMembers(t, b.Addr(), 1)
}

// joinAndDie sends a join request and disconnects before the answer.
func joinAndDie(t *testing.T, addr string) {
	t.Helper()
	metadata := kmsg.NewConsumerMemberMetadata()
	metadata.Topics = []string{"test.group"}
	protocol := kmsg.NewJoinGroupRequestProtocol()
	protocol.Name, protocol.Metadata = "cooperative-sticky", metadata.AppendTo(nil)
	req := kmsg.NewPtrJoinGroupRequest()
	req.Version, req.Group, req.ProtocolType = 2, "test.group", "consumer"
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 6000, 6000
	req.Protocols = append(req.Protocols, protocol)
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write(kmsg.NewRequestFormatter().AppendRequest(nil, req, 7)); err != nil {
		t.Fatal(err)
	}
}

// awaitMembers waits until the group is stable with so many members.
func awaitMembers(t *testing.T, addr string, want int) {
	t.Helper()
	c := client(t, addr)
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	var last string
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); <-ticker.C {
		req := kmsg.NewPtrDescribeGroupsRequest()
		req.Groups = []string{"test.group"}
		resp, err := req.RequestWith(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		g := resp.Groups[0]
		if len(g.Members) == want && (g.State == "Stable" || want == 2) {
			return
		}
		last = fmt.Sprintf("%d members, %s", len(g.Members), g.State)
	}
	t.Fatalf("the group has %s; want %d members", last, want)
}
