package executortest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// armNIC is a NIC at one time. It is never changed; the next one is a copy.
type armNIC struct {
	id    string
	shown document // what it is to be, and whether it is
	live  document // what it is: the data plane
}

// document is JSON as it is decoded, with numbers as they are written.
type document = map[string]any

// armOperation is a put that was accepted.
type armOperation struct {
	nic  string
	call int
	due  time.Time
	done bool
	err  *refusal // what it ends with
}

// ID is the resource ID of a NIC that was given by name.
func (f *ARM) ID(nic string) string {
	if strings.HasPrefix(nic, "/") {
		return nic
	}
	return "/subscriptions/" + armSubscription + "/resourceGroups/" + armGroup + "/providers/Microsoft.Network/networkInterfaces/" + nic
}

// called is the opposite of ID.
func (f *ARM) called(id string) string {
	if name, ok := strings.CutPrefix(id, f.ID("")); ok {
		return name
	}
	return id
}

// AddNIC adds a NIC in the subnet, by its name in the resource group or by its ID.
func (f *ARM) AddNIC(nic string, primary netip.Addr) {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := f.ID(nic)
	doc := decodeDocument([]byte(fmt.Sprintf(`{
		"id": %q, "name": %q, "type": "Microsoft.Network/networkInterfaces", "location": "westeurope", "kind": "Regular",
		"properties": {
			"provisioningState": "Succeeded", "enableIPForwarding": false, "enableAcceleratedNetworking": true, "macAddress": "00-0D-3A-00-00-0A",
			"networkSecurityGroup": {"id": "/subscriptions/x/resourceGroups/y/providers/Microsoft.Network/networkSecurityGroups/nsg"},
			"ipConfigurations": []
		}
	}`, id, id[strings.LastIndex(id, "/")+1:])))
	f.alter(id, doc, func(doc document) { addConfiguration(doc, "ipconfig1", primary, true) })
}

// Edit changes the document of a NIC by hand, as another writer. It shows at once, in every
// read, as does whatever was before it.
func (f *ARM) Edit(nic string, edit func(properties document)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.alter(f.ID(nic), f.history.current()[strings.ToLower(f.ID(nic))].shown, func(doc document) { edit(properties(doc)) })
}

// Place puts an address on a NIC by hand, and takes it from the one that has it. On no NIC
// ("") it is removed from all.
func (f *ARM) Place(nic string, a netip.Addr) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range f.history.current() {
		if slices.Contains(append(addresses(n.shown), addresses(n.live)...), a) {
			f.alter(n.id, n.shown, func(doc document) {
				p := properties(doc)
				p["ipConfigurations"] = slices.DeleteFunc(configurations(doc), func(c any) bool { return addressOf(c) == a })
			})
		}
	}
	if nic != "" {
		f.add(nic, a)
	}
}

// Double puts an address on a NIC by hand, and leaves it where else it is.
func (f *ARM) Double(nic string, a netip.Addr) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.add(nic, a)
}

func (f *ARM) add(nic string, a netip.Addr) {
	id := f.ID(nic)
	f.alter(id, f.history.current()[strings.ToLower(id)].shown, func(doc document) {
		addConfiguration(doc, "by-hand-"+strings.ReplaceAll(a.String(), ":", "-"), a, false)
	})
}

// Limit gives a NIC no more IP configurations than so many, or than it has if that is 0.
func (f *ARM) Limit(nic string, configs int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := strings.ToLower(f.ID(nic))
	if configs == 0 {
		configs = len(configurations(f.history.current()[key].shown))
	}
	f.limits[key] = configs
}

// Holders lists the NICs that have an address now, in order, whatever reads show.
func (f *ARM) Holders(a netip.Addr) (nics []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.settle()
	for _, n := range f.history.current() {
		if slices.Contains(addresses(n.live), a) {
			nics = append(nics, f.called(n.id))
		}
	}
	slices.Sort(nics)
	return nics
}

// Properties are those of a NIC as it is now, whatever reads show.
func (f *ARM) Properties(nic string) document {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.settle()
	return properties(copyDocument(f.history.current()[strings.ToLower(f.ID(nic))].live))
}

// seen is the world as a read shows it.
func (f *ARM) seen() map[string]*armNIC { return f.history.shown(f.now().Add(-f.reads)) }

// alter changes a NIC by hand, and lets the world begin with that.
func (f *ARM) alter(id string, doc document, edit func(document)) {
	f.settle()
	doc = copyDocument(doc)
	edit(doc)
	f.stamp(id, doc, "Succeeded")
	for _, op := range f.operations {
		op.done = op.done || strings.EqualFold(op.nic, id)
	}
	f.push(f.now(), &armNIC{id: id, shown: doc, live: doc})
	f.history = f.history[len(f.history)-1:]
}

// push lets a NIC be otherwise from a time on.
func (f *ARM) push(at time.Time, n *armNIC) {
	nics := maps.Clone(f.history.current())
	nics[strings.ToLower(n.id)] = n
	f.history = append(f.history, moment[map[string]*armNIC]{at, nics})
}

// stamp gives a document what only ARM writes.
func (f *ARM) stamp(id string, doc document, state string) {
	f.etags++
	etag := fmt.Sprintf(`W/"00000000-0000-4000-8000-%012d"`, f.etags)
	doc["id"], doc["etag"] = id, etag
	properties(doc)["provisioningState"] = state
	for _, c := range configurations(doc) {
		c := c.(document)
		c["id"], c["etag"], c["type"] = fmt.Sprintf("%s/ipConfigurations/%s", id, c["name"]), etag, "Microsoft.Network/networkInterfaces/ipConfigurations"
		properties(c)["provisioningState"] = state
	}
}

// accept begins to put a NIC, and returns what it shows meanwhile.
func (f *ARM) accept(call int, id string, doc document) document {
	op := &armOperation{nic: id, call: call, due: f.now().Add(f.effects)}
	if len(f.failing) > 0 {
		op.err, f.failing = f.failing[0], f.failing[1:]
	}
	f.stamp(id, doc, "Updating")
	f.push(f.now(), &armNIC{id: id, shown: doc, live: f.history.current()[strings.ToLower(id)].live})
	f.operations = append(f.operations, op)
	return doc
}

// settle ends the operations that are due.
func (f *ARM) settle() {
	due := slices.DeleteFunc(slices.Clone(f.operations), func(op *armOperation) bool { return op.done || op.due.After(f.now()) })
	slices.SortStableFunc(due, func(a, b *armOperation) int { return a.due.Compare(b.due) })
	for _, op := range due {
		n := f.history.current()[strings.ToLower(op.nic)]
		doc, live, state := copyDocument(n.shown), n.live, "Failed"
		if op.err == nil {
			live, state = doc, "Succeeded"
			f.calls[op.call].Took = op.due
		}
		f.stamp(n.id, doc, state)
		f.push(op.due, &armNIC{id: n.id, shown: doc, live: live})
		op.done = true
	}
}

func decodeDocument(data []byte) (doc document) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&doc); err != nil {
		return nil
	}
	return doc
}

func copyDocument(doc document) document {
	data, err := json.Marshal(doc)
	if err != nil {
		panic(err)
	}
	return decodeDocument(data)
}

// properties are those of a document, made if there are none.
func properties(doc document) document {
	p, ok := doc["properties"].(document)
	if !ok {
		p = document{}
		doc["properties"] = p
	}
	return p
}

func configurations(doc document) []any {
	list, _ := properties(doc)["ipConfigurations"].([]any)
	return list
}

func addConfiguration(doc document, name string, a netip.Addr, primary bool) {
	version := "IPv4"
	if a.Is6() {
		version = "IPv6"
	}
	properties(doc)["ipConfigurations"] = append(configurations(doc), document{"name": name, "properties": document{
		"primary": primary, "privateIPAddress": a.String(), "privateIPAddressVersion": version, "privateIPAllocationMethod": "Static", "subnet": document{"id": armSubnet},
	}})
}

// addressOf is the address of an IP configuration.
func addressOf(c any) netip.Addr {
	text, _ := properties(c.(document))["privateIPAddress"].(string)
	a, _ := netip.ParseAddr(text)
	return a
}

func addresses(doc document) (all []netip.Addr) {
	for _, c := range configurations(doc) {
		if a := addressOf(c); a.IsValid() {
			all = append(all, a)
		}
	}
	return all
}
