// Styles of what the script adds. They are set through the CSSOM, which no Content-Security-Policy restricts.
export const styles = `
.zoom-bar{display:flex;flex-wrap:wrap;align-items:center;gap:4px;margin:8px 0 2px;font-size:12.5px;color:var(--soft)}
.zoom-bar span{margin-left:8px}
.zoom-bar button,nav button{font:inherit;color:var(--c0);background:var(--panel);border:1px solid var(--line);border-radius:5px;min-width:28px;padding:1px 8px;cursor:pointer}
.zoom-bar button:disabled{color:var(--soft);opacity:.55;cursor:default}
svg[data-left]{user-select:none;-webkit-user-select:none}
svg.zoomed .time,svg.zoomed .caption,svg.zoomed .pointer{display:none}
svg.zoomed path.line{vector-effect:non-scaling-stroke}
svg .crosshair{stroke:var(--ink);stroke-width:1;stroke-dasharray:2 2;pointer-events:none}
svg .selection{fill:var(--c0);fill-opacity:.18;stroke:var(--c0);pointer-events:none}
.readout{position:fixed;z-index:9;max-width:min(420px,90vw);padding:5px 9px;background:var(--paper);color:var(--ink);border:1px solid var(--soft);border-radius:5px;font-size:12.5px;line-height:1.4;pointer-events:none;overflow-wrap:anywhere}
.brushed h3{margin-top:12px}
.sort{all:unset;cursor:pointer}
.sort:focus-visible{outline:2px solid var(--c0);outline-offset:2px}
.sort:hover{color:var(--ink)}
.sort.beside::before{content:"↕"}
[aria-sort=ascending] .sort::after{content:" ▲"}
[aria-sort=descending] .sort::after{content:" ▼"}
.filter{display:block;margin:6px 0;font-size:12.5px;color:var(--soft)}
.filter input{font:inherit;color:var(--ink);background:var(--paper);border:1px solid var(--line);border-radius:5px;padding:2px 8px;width:220px;max-width:70vw;margin-right:8px}
.figure:focus-visible{outline:2px solid var(--c0);outline-offset:2px}
:not(svg *).hit{outline:2px solid var(--c1);outline-offset:2px}
svg .hit{stroke:var(--c1);stroke-width:3;vector-effect:non-scaling-stroke}
@media print{.zoom-bar,.filter,.readout,.brushed,nav button{display:none!important}}
`;
