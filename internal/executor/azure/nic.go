package azure

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
)

// nic is a network interface as ARM shows it. All of its document is kept, to be sent back.
type nic struct {
	id       *arm.ResourceID
	etag     string
	state    string // provisioningState
	forwards bool
	configs  []ipConfig

	document, properties object
}

// object is a JSON object whose values stay as they are written.
type object map[string]json.RawMessage

// ipConfig is one IP configuration of a NIC.
type ipConfig struct {
	address netip.Addr // none for a block of addresses
	primary bool
	subnet  string
	public  string // the ID of the public address that goes with it
	whole   json.RawMessage
}

// The properties that are changed.
const (
	configurations = "ipConfigurations"
	forwarding     = "enableIPForwarding"
)

// decode reads the document of a NIC.
func decode(data []byte) (*nic, error) {
	n := &nic{}
	if err := json.Unmarshal(data, &n.document); err != nil {
		return nil, err
	}
	if err := n.document.get("properties", &n.properties); err != nil {
		return nil, err
	}
	if n.properties == nil {
		return nil, errors.New("it has no properties")
	}
	var configs []json.RawMessage
	err := errors.Join(
		n.document.get("etag", &n.etag),
		n.properties.get("provisioningState", &n.state),
		n.properties.get(forwarding, &n.forwards),
		n.properties.get(configurations, &configs),
	)
	if err != nil {
		return nil, err
	}
	for _, whole := range configs {
		c := ipConfig{whole: whole}
		if err := c.read(); err != nil {
			return nil, fmt.Errorf("%s: %w", configurations, err)
		}
		n.configs = append(n.configs, c)
	}
	return n, nil
}

// get decodes one value of an object, if it is there.
func (o object) get(name string, into any) error {
	raw, ok := o[name]
	if !ok {
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (c *ipConfig) read() error {
	var shown struct {
		Properties struct {
			Primary          bool   `json:"primary"`
			PrivateIPAddress string `json:"privateIPAddress"`
			Subnet           struct {
				ID string `json:"id"`
			} `json:"subnet"`
			PublicIPAddress struct {
				ID string `json:"id"`
			} `json:"publicIPAddress"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(c.whole, &shown); err != nil {
		return err
	}
	p := shown.Properties
	c.primary, c.subnet, c.public = p.Primary, p.Subnet.ID, p.PublicIPAddress.ID
	c.address, _ = netip.ParseAddr(p.PrivateIPAddress) // a block of addresses is none of ours
	return nil
}

// has returns the IP configuration of an address.
func (n *nic) has(a netip.Addr) (ipConfig, bool) {
	return n.find(func(c ipConfig) bool { return c.address == a })
}

func (n *nic) find(which func(ipConfig) bool) (ipConfig, bool) {
	if i := slices.IndexFunc(n.configs, which); i >= 0 {
		return n.configs[i], true
	}
	return ipConfig{}, false
}

// subnet is the ID of the subnet of the primary address.
func (n *nic) subnet() string {
	c, _ := n.find(func(c ipConfig) bool { return c.primary })
	return c.subnet
}

// with is the document with an address more, in the subnet of the primary one.
func (n *nic) with(a netip.Addr) ([]byte, error) {
	version := "IPv4"
	if a.Is6() {
		version = "IPv6"
	}
	added, err := encode(map[string]any{
		"name": "tasuki-" + strings.ReplaceAll(a.StringExpanded(), ":", "-"),
		"properties": map[string]any{
			"primary":                   false,
			"privateIPAddress":          a,
			"privateIPAddressVersion":   version,
			"privateIPAllocationMethod": "Static",
			"subnet":                    map[string]string{"id": n.subnet()},
		},
	})
	if err != nil {
		return nil, err
	}
	return n.edited(configurations, append(n.wholes(), added))
}

// without is the document without an address that is not the primary one.
func (n *nic) without(a netip.Addr) ([]byte, error) {
	less := *n
	less.configs = slices.DeleteFunc(slices.Clone(n.configs), func(c ipConfig) bool { return c.address == a && !c.primary })
	return n.edited(configurations, less.wholes())
}

// whole is the document as it is.
func (n *nic) whole() ([]byte, error) { return encode(n.document) }

func (n *nic) wholes() []json.RawMessage {
	out := make([]json.RawMessage, len(n.configs))
	for i, c := range n.configs {
		out[i] = c.whole
	}
	return out
}

// edited is the document with one property changed, and everything else as it is written.
func (n *nic) edited(property string, value any) ([]byte, error) {
	raw, err := encode(value)
	if err != nil {
		return nil, err
	}
	properties, document := maps.Clone(n.properties), maps.Clone(n.document)
	properties[property] = raw
	if document["properties"], err = encode(properties); err != nil {
		return nil, err
	}
	return encode(document)
}

// encode writes JSON, without the escapes that are for HTML.
func encode(v any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}
