'use strict';

document.documentElement.classList.add('js');
const plans = document.getElementById('plans');

// Bytes of what the page carries under gzip, in base64.
async function inflate(element) {
  const text = atob(element.textContent.trim());
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'))).arrayBuffer();
}

const inflated = async (element) => new TextDecoder().decode(await inflate(element));

// Lists of which one part is shown at a time. What the parts hold is markup that tasuki has escaped.
const parts = new Map(); // element with the packed parts -> the parts, once they are needed

async function turn(id, part) {
  const packed = document.querySelector(`[data-packed="${id}"]`);
  if (!packed) return;
  if (!parts.has(packed)) parts.set(packed, inflated(packed).then((text) => text.split('\0')));
  const all = await parts.get(packed);
  if (!packed.isConnected) return; // replaced meanwhile
  part = Math.min(Math.max(part, 0), all.length - 1);
  document.getElementById(id).innerHTML = all[part];
  const pager = document.querySelector(`.pager[data-list="${id}"]`);
  const {of, each, total} = pager.dataset;
  pager.dataset.part = part;
  pager.querySelector('[role=status]').textContent =
    `${of} ${part * each + 1} to ${Math.min((part + 1) * each, total)} of ${total} are shown`;
  pager.querySelector('[data-step="-1"]').disabled = part === 0;
  pager.querySelector('[data-step="1"]').disabled = part === all.length - 1;
}

plans.addEventListener('click', async (event) => {
  const pager = event.target.dataset.step && event.target.closest('.pager');
  if (pager) {
    await turn(pager.dataset.list, Number(pager.dataset.part || 0) + Number(event.target.dataset.step));
    if (event.target.disabled) document.getElementById(pager.dataset.list).focus();
    return;
  }
  const link = event.target.closest('a[data-part]');
  if (!link) return;
  const shown = document.querySelector('.pager[data-list="pools"]')?.dataset.part || '0';
  if (shown !== link.dataset.part) {
    event.preventDefault();
    await turn(link.dataset.list, Number(link.dataset.part));
  }
  document.querySelector(link.getAttribute('href')).focus();
});

// show puts other plans in the place of those that are shown, and leaves people where they are.
async function show(html) {
  const focused = plans.contains(document.activeElement) && document.activeElement.id;
  const turned = [...plans.querySelectorAll('.pager[data-part]')].map((p) => [p.dataset.list, Number(p.dataset.part)]);
  const open = [...plans.querySelectorAll('details[open]')].map((d) => d.id);
  parts.clear();
  plans.innerHTML = html;
  turned.sort(([a], [b]) => (b === 'pools') - (a === 'pools')); // they hold the other lists
  for (const [id, part] of turned) await turn(id, part);
  for (const id of open) document.getElementById(id)?.setAttribute('open', '');
  if (focused) document.getElementById(focused)?.focus({preventScroll: true});
}

// The simulator is started when it is needed first.
let simulator;

async function start() {
  const go = new Go();
  // A browser has no files, which is not the same as that it cannot look: time zones are built in.
  globalThis.fs.open = (path, flags, mode, callback) => callback(Object.assign(new Error('no such file'), {code: 'ENOENT'}));
  const {instance} = await WebAssembly.instantiate(await inflate(document.getElementById('wasm')), go.importObject);
  go.run(instance); // it stays, and answers as tasukiSimulate
  return globalThis.tasukiSimulate;
}

const started = () => start().catch((error) => {
  simulator = undefined; // the next one tries again
  throw error;
});

const form = document.getElementById('edit');
let simulated = false;

async function recompute(event) {
  event.preventDefault();
  const said = document.getElementById('said'), wrong = document.getElementById('wrong'), button = document.getElementById('recompute');
  if (button.getAttribute('aria-disabled') === 'true') return;
  button.setAttribute('aria-disabled', 'true');
  said.textContent = 'Computing ...';
  wrong.hidden = true;
  try {
    simulator ??= started();
    const simulate = await simulator;
    const files = [];
    for (const f of form.querySelectorAll('[data-file]')) {
      files.push({name: f.dataset.file, text: f.matches('textarea') ? f.value : await inflated(f)});
    }
    await new Promise((done) => setTimeout(done)); // lets the page say that it computes
    const answer = JSON.parse(simulate(JSON.stringify({
      files, pools: JSON.parse(form.dataset.pools), zone: form.dataset.zone, at: form.querySelector('#at').value, days: Number(form.querySelector('#days').value),
    })));
    if (answer.error) throw new Error(answer.error);
    simulated = true;
    await show(answer.html);
    said.textContent = `Recomputed. ${answer.verdict}`;
  } catch (error) {
    said.textContent = 'Not recomputed: the plans above are as before.';
    wrong.textContent = `tasuki: ${error.message}`;
    wrong.hidden = false;
  } finally {
    button.removeAttribute('aria-disabled');
  }
}

form?.addEventListener('submit', recompute);
form?.addEventListener('reset', () => setTimeout(() => form.requestSubmit()));
form?.addEventListener('input', () => { simulator ??= started(); simulator.catch(() => {}); }, {once: true});

// A live page asks its server for news, unless it is paused or shows a change that is being tried.
const every = Number(document.body.dataset.live || 0); // ms
let paused = false;

async function refresh() {
  const fresh = document.getElementById('fresh');
  if (!paused && !simulated) {
    try {
      const answer = await fetch('plans', {cache: 'no-store'});
      const text = await answer.text();
      if (!answer.ok) throw new Error(text.trim());
      if (!paused && !simulated) await show(text);
      fresh.textContent = '';
    } catch (error) {
      fresh.textContent = `What is shown is out of date: ${error.message}`;
    }
  } else if (simulated) {
    fresh.textContent = 'What is shown is a change that is being tried; load the page again for the cluster as it is.';
  }
  setTimeout(refresh, every);
}

if (every) {
  setTimeout(refresh, every);
  document.getElementById('pause').addEventListener('click', (event) => {
    paused = !paused;
    event.target.setAttribute('aria-pressed', paused);
  });
}
