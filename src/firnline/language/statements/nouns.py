"""Nouns of which the rules for English know what they are: jobs, animals, languages, conditions."""

# ruff: noqa: RUF001, E501 - typographic signs are meant, and lists stay on one line

from __future__ import annotations

from typing import Final


def _either(words: str) -> str:
    """A pattern that matches any of these words, in which "_" stands for a space."""
    return "|".join(word.replace("_", " ") for word in words.split())


JOBS: Final = _either("""
accountant actor actress actuary administrator advisor adviser analyst anesthesiologist animator archaeologist architect archivist artist
astronomer athlete attorney auditor author baker banker barber barista barrister bartender beekeeper biologist blacksmith bookkeeper botanist
bricklayer broker builder butcher buyer caregiver caretaker carer carpenter cashier chef chemist chiropractor choreographer cinematographer
cleaner clerk coach columnist comedian composer conductor consultant contractor controller cook coordinator copywriter counselor counsellor
courier curator dancer decorator dentist dermatologist designer detective developer dietitian director dispatcher doctor doula
dramatist driver drummer economist editor electrician engineer entrepreneur epidemiologist estate_agent executive farmer fashion_designer
filmmaker firefighter fisherman florist flight_attendant founder freelancer gardener geologist goldsmith grocer guide hairdresser handyman
headhunter historian housekeeper hygienist illustrator inspector instructor insurance_agent intern interpreter investor janitor jeweler
jeweller joiner journalist judge lab_technician landscaper lawyer lecturer librarian lifeguard linguist locksmith logistician
machinist magician maid manager marketer mason massage_therapist mathematician mayor mechanic merchant meteorologist midwife miner model
musician nanny negotiator neurologist notary novelist nurse nutritionist obstetrician officer operator optician optometrist orthodontist
painter paralegal paramedic pastor pathologist pediatrician pharmacist philosopher photographer physician physicist physiotherapist pianist
pilot planner playwright plumber podcaster poet police_officer politician porter postdoc postman potter principal priest producer
professor programmer project_manager proofreader psychiatrist psychologist publicist radiographer radiologist realtor receptionist recruiter
referee reporter researcher restorer roofer sailor salesman salesperson saleswoman scientist screenwriter sculptor seamstress secretary
security_guard server sheriff shopkeeper singer social_worker soldier solicitor sommelier songwriter statistician steward stonemason
strategist student stylist supervisor surgeon surveyor tailor tattooist teacher teaching_assistant technician therapist tiler tour_guide
trader trainee trainer translator travel_agent treasurer truck_driver tutor typist underwriter undertaker upholsterer usher valet vet
veterinarian vicar videographer violinist waiter waitress warden watchmaker weaver welder wine_maker winemaker writer youtuber zoologist
intern apprentice assistant bookseller broker captain carpenter cellist civil_servant commuter copilot data_scientist dog_walker ecologist
foreman furniture_maker glazier graphic_designer hotelier hydrologist importer landscape_gardener librarian machinist manicurist
marine_biologist ship's_engineer mediator merchant ministry_official museum_guide naturalist oceanographer ombudsman optician orthopedist
pastry_chef personal_trainer pest_controller piano_tuner planner programmer quantity_surveyor ranger real_estate_agent rigger
scaffolder shepherd shift_worker sound_engineer speech_therapist stage_manager stagehand statistician stockbroker taxi_driver teamster
toolmaker train_driver tram_driver bus_driver urban_planner urologist veterinary_nurse volunteer warehouse_worker web_developer webmaster
""")
TITLES: Final = _either("""
lead head director manager officer ceo cto cfo coo vp owner co-founder cofounder founder chair president partner specialist coordinator
assistant representative agent principal dean shift_leader landlord landlady
""")
NO_JOBS: Final = (
    "(?:beginner|newcomer|starter|believer|lover|hater|fighter|winner|loser|learner|user|customer|member|owner|mother|father|brother|sister|daughter|stranger|foreigner|outsider"
    "|insider|teenager|toddler|smoker|drinker|eater|sleeper|riser|runner|swimmer|hiker|climber|biker|cyclist|gamer|player|walker|sucker|follower|supporter|subscriber|voter"
    "|travell?er|commuter|camper|backpacker|tourist|optimist|pessimist|perfectionist|minimalist|realist|feminist|atheist|socialist|capitalist|communist|humanist|vegetarian|civilian"
    "|guardian|pedestrian|speaker|listener|talker|thinker|doer|procrastinator|survivor|donor|debtor|creditor|visitor|neighbou?r|competitor|collector|worrier|sinner|dreamer|overthinker"
    "|wanderer|seeker|widower|bachelor|junior|senior|minor|major|sponsor|twin|human|woman|man|person|grown woman|grown man|better|bigger|number|matter|corner|order|bummer|cancer|leader"
    "|keeper|goner|quitter|latecomer|lefty|lurker|night owl|early|pacifist|purist|nudist|idealist|downer|worker|sitter|helper|holder|packer|cheapskate|computer|poster|letter"
    "|filter|folder|server|printer|router|newsletter|error|color|colour|mirror|motor|list|fist|christian|sagittarian|virgin|dinner|summer|winter|monster)"
)
"""Nouns that end like those of jobs."""
ANIMALS: Final = _either("""
dogs? cats? pupp(?:y|ies) kittens? parrots? rabbits? bunn(?:y|ies) hamsters? horses? pon(?:y|ies) goldfish turtles? tortoises? guinea_pigs?
hens? chickens? goats? sheep donkeys? ducks? geese parakeets? budgies? canary ferrets? geckos? snakes? lizards? rats? gerbils?
chinchillas? hedgehogs? cockatiels? alpacas? bees labrador retriever poodle greyhound dachshund beagle collie terrier spaniel corgi husky
bulldog shepherd schnauzer chihuahua pug rottweiler dalmatian whippet labradoodle pitbull mutt tabby siamese ragdoll maine_coon
""")
LANGUAGES: Final = (
    "(?-i:English|French|German|Spanish|Italian|Portuguese|Dutch|Russian|Ukrainian|Polish|Czech|Slovak|Sloven(?:e|ian)|Croatian|Serbian|Bosnian"
    "|Bulgarian|Romanian|Hungarian|Greek|Turkish|Arabic|Hebrew|Persian|Farsi|Kurdish|Urdu|Hindi|Bengali|Punjabi|Gujarati|Marathi|Tamil"
    "|Telugu|Kannada|Malayalam|Sinhala|Nepali|Thai|Lao|Khmer|Vietnamese|Burmese|Malay|Indonesian|Tagalog|Filipino|Mandarin|Cantonese|Chinese"
    "|Japanese|Korean|Mongolian|Tibetan|Swahili|Amharic|Somali|Yoruba|Igbo|Hausa|Zulu|Xhosa|Afrikaans|Danish|Swedish|Norwegian|Finnish"
    "|Icelandic|Estonian|Latvian|Lithuanian|Catalan|Basque|Galician|Irish|Gaelic|Welsh|Breton|Flemish|Luxembourgish|Albanian|Macedonian"
    "|Maltese|Armenian|Georgian|Azerbaijani|Kazakh|Uzbek|Pashto|Esperanto|Latin|ASL|BSL|sign language)"
)
DEMONYMS: Final = (
    "American|British|English|Scottish|Welsh|Irish|Canadian|Australian|New Zealander|Kiwi|German|Austrian|Swiss|French|Belgian|Dutch|Spanish"
    "|Portuguese|Italian|Greek|Turkish|Polish|Czech|Slovak|Hungarian|Romanian|Bulgarian|Serbian|Croatian|Slovenian|Bosnian|Albanian|Ukrainian"
    "|Russian|Belarusian|Lithuanian|Latvian|Estonian|Finnish|Swedish|Norwegian|Danish|Icelandic|Mexican|Brazilian|Argentinian|Argentine"
    "|Chilean|Colombian|Peruvian|Venezuelan|Cuban|Ecuadorian|Bolivian|Uruguayan|Indian|Pakistani|Bangladeshi|Nepali|Sri Lankan|Chinese"
    "|Japanese|Korean|Taiwanese|Vietnamese|Thai|Filipino|Filipina|Indonesian|Malaysian|Singaporean|Iranian|Iraqi|Syrian|Lebanese|Israeli"
    "|Palestinian|Jordanian|Saudi|Egyptian|Moroccan|Algerian|Tunisian|Nigerian|Ghanaian|Kenyan|Ethiopian|Somali|South African|Ugandan"
    "|Jamaican|Haitian|Dominican|Puerto Rican|Kurdish|Armenian|Georgian|Kazakh"
)
CONDITIONS: Final = _either("""
asthma diabetes adhd add autism epilepsy migraines? arthritis rheumatoid_arthritis osteoarthritis osteoporosis hypertension blood_pressure
high_cholesterol depression anxiety ptsd ocd bipolar_disorder insomnia ibs ibd crohn's crohn['’]s_disease colitis coeliac_disease
celiac_disease eczema psoriasis rosacea tinnitus vertigo dyslexia dyscalculia dyspraxia scoliosis hernia slipped_discs? herniated_discs?
endometriosis pcos anemia anaemia cancer leukemia lymphoma ms multiple_sclerosis parkinson['’]?s? lupus hypothyroidism hyperthyroidism
sleep_apn[oe]?ea fibromyalgia gout sciatica heart_condition heart_disease heart_murmur arrhythmia pacemaker glaucoma cataracts
hay_fever reflux gerd gastritis ulcers? kidney_stones kidney_disease gallstones lactose_intolerance gluten_intolerance hiv hepatitis
chronic_fatigue carpal_tunnel tennis_elbow plantar_fasciitis knees? back_pain back_problems knee_problems back shoulder knee
cerebral_palsy down_syndrome tourette['’]?s? sickle_cell thalassemia sinusitis copd emphysema bronchitis long_covid stammer lisp
gestational_diabetes prediabetes astigmatism hearing_loss
""")
STATES_OF_HEALTH: Final = (
    "(?:type [12] )?diabetic|prediabetic|dyslexic|asthmatic|epileptic|colou?r[- ]?blind|legally blind|blind|deaf|hard of hearing|autistic|on the spectrum|pregnant"
    "|bipolar|an[a]?emic|coeliac|celiac|disabled|hypoglycemic|h[a]?emophiliac|immunocompromised|near-?sighted|far-?sighted|short-sighted|in remission|in a wheelchair"
    "|a wheelchair user|carsick|seasick|insomniac|neurodivergent|an? amputee"
)
MEDICINES: Final = (
    r"\w+(?:formin|pril|statin|olol|sartan|azole|cillin|dipine|lukast|oxetine|pram|zepam|zolam|thyroxine|cycline|profen|tidine|gliptin|triptan|vir|mab|idone|apine|phenidate)\b"
    "|insulin|aspirin|ibuprofen|paracetamol|tylenol|ritalin|adderall|concerta|vyvanse|prozac|zoloft|lexapro|xanax|ozempic|wegovy|metformin|warfarin|eliquis|xarelto"
    "|lithium|prednisone|prednisolone|sertraline|levothyroxine|gabapentin|pregabalin|methotrexate|humira|omeprazole|antihistamines?|antidepressants?|antibiotics|beta blockers?"
    "|blood thinners?|statins|steroids|(?:blood pressure|heart|sleeping|thyroid|contraceptive|iron|water|birth control|diet|pain|allergy) (?:pills?|tablets?|medication|meds|medicine)"
    "|the pill|painkillers|supplements?|vitamin [a-z]\\d{0,2}|creatine|melatonin|magnesium|probiotics"
)
INSTRUMENTS: Final = _either("""
piano guitar violin cello viola bass double_bass drums flute clarinet saxophone sax trumpet trombone horn tuba oboe bassoon harp accordion
harmonica ukulele banjo mandolin keyboard keyboards organ bagpipes recorder percussion sitar bass_guitar electric_guitar french_horn synth
""")
GAMES: Final = _either("""
football soccer tennis basketball baseball volleyball handball hockey ice_hockey field_hockey rugby cricket golf badminton squash table_tennis
ping_pong padel pickleball lacrosse softball water_polo chess poker bridge darts snooker pool billiards bowling netball hurling
ultimate_frisbee american_football
""")
DURABLES: Final = _either("""
car bike bicycle motorcycle motorbike scooter van house flat apartment condo boat laptop camera telescope piano guitar violin drone e-bike
ebike tent camper campervan caravan rv sewing_machine 3d_printer printer fridge washing_machine dishwasher air_fryer espresso_machine
grill smoker kiln pizza_oven sofa dslr kayak canoe surfboard treadmill hot_tub greenhouse allotment cottage cabin farm garden balcony pool
pickup truck suv station_wagon convertible e-reader kindle bread_machine stand_mixer slow_cooker rice_cooker instant_pot food_processor
wood_stove fireplace heat_pump solar_panels boiler
""")
