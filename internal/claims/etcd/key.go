package etcd

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/claims"
)

// The kinds of keys.
const (
	claimKeys = "claims/"
	homeKeys  = "homes/"
	drainKeys = "drains/"
	aliveKeys = "alive/"
)

// key joins the parts of a key; none is taken for two, whatever signs are in it.
func (s *Store) key(kind string, parts ...string) string {
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return s.prefix + kind + strings.Join(parts, "/")
}

func (s *Store) claimKey(k capture.Key) string {
	return s.key(claimKeys, k.Pool, address(k.Address), string(k.Domain))
}

// parts are what key has joined.
func (s *Store) parts(kind string, kv *mvccpb.KeyValue, n int) ([]string, error) {
	parts := strings.Split(strings.TrimPrefix(string(kv.Key), s.prefix+kind), "/")
	if len(parts) != n {
		return nil, damaged(kv, fmt.Errorf("it has %d parts after %s, not %d", len(parts), kind, n))
	}
	for i, p := range parts {
		var err error
		if parts[i], err = url.PathUnescape(p); err != nil {
			return nil, damaged(kv, err)
		}
	}
	return parts, nil
}

// address is how an address is stored, "" when there is none.
func address(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

func parseAddress(s string) (netip.Addr, error) {
	if s == "" {
		return netip.Addr{}, nil
	}
	return netip.ParseAddr(s)
}

// damaged is the error of a key that nobody can make sense of. No epoch is guessed.
func damaged(kv *mvccpb.KeyValue, err error) error {
	return fmt.Errorf("key %s with value %q was not written by tasuki: %w: correct it with etcdctl, or delete it: "+
		"the agents then take the epoch up above what their journals know", kv.Key, kv.Value, err)
}

// claimValue is a claim as it is stored.
type claimValue struct {
	Epoch  capture.Epoch  `json:"epoch"`
	Holder capture.Holder `json:"holder"`
}

// claim is what a key says, nil for never claimed.
func claim(kv *mvccpb.KeyValue) (capture.Claim, error) {
	if kv == nil {
		return capture.Claim{}, nil
	}
	var v claimValue
	if err := read(kv, &v, &v.Epoch); err != nil {
		return capture.Claim{}, err
	}
	return capture.Claim(v), nil
}

// homeValue is an owner as it is stored.
type homeValue struct {
	Node  string `json:"node"`
	Site  string `json:"site"`
	Epoch uint64 `json:"epoch"`
}

// home is what a key says of where an address lives.
func home(h capture.Home, kv *mvccpb.KeyValue) (claims.AddressLease, error) {
	var v homeValue
	if err := read(kv, &v, &v.Epoch); err != nil {
		return claims.AddressLease{}, err
	}
	return claims.AddressLease{Home: h, Owner: capture.Location{Node: v.Node, Site: v.Site}, Epoch: v.Epoch}, nil
}

func read[E ~uint64](kv *mvccpb.KeyValue, into any, epoch *E) error {
	err := json.Unmarshal(kv.Value, into)
	if err == nil && *epoch == 0 {
		err = fmt.Errorf("it has no epoch")
	}
	if err != nil {
		return damaged(kv, err)
	}
	return nil
}

// value is how something is stored. Nothing that is stored can fail to be.
func value(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}
